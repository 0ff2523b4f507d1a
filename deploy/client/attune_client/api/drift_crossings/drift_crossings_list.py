from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.paginated_crossing_list import PaginatedCrossingList
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    open_: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["open"] = open_

    params["page_size"] = page_size

    json_policy: str | Unset = UNSET
    if not isinstance(policy, Unset):
        json_policy = str(policy)
    params["policy"] = json_policy

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/drift-crossings",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PaginatedCrossingList | Problem | None:
    if response.status_code == 200:
        response_200 = PaginatedCrossingList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[PaginatedCrossingList | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    open_: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> Response[PaginatedCrossingList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        open_ (bool | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedCrossingList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        open_=open_,
        page_size=page_size,
        policy=policy,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    open_: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> PaginatedCrossingList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        open_ (bool | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedCrossingList | Problem
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        open_=open_,
        page_size=page_size,
        policy=policy,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    open_: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> Response[PaginatedCrossingList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        open_ (bool | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedCrossingList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        open_=open_,
        page_size=page_size,
        policy=policy,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    open_: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> PaginatedCrossingList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        open_ (bool | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedCrossingList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            open_=open_,
            page_size=page_size,
            policy=policy,
        )
    ).parsed
