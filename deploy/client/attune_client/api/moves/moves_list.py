import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.paginated_move_list import PaginatedMoveList
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    moved_after: datetime.datetime | Unset = UNSET,
    moved_before: datetime.datetime | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_moved_after: str | Unset = UNSET
    if not isinstance(moved_after, Unset):
        json_moved_after = moved_after.isoformat()
    params["moved_after"] = json_moved_after

    json_moved_before: str | Unset = UNSET
    if not isinstance(moved_before, Unset):
        json_moved_before = moved_before.isoformat()
    params["moved_before"] = json_moved_before

    params["page_size"] = page_size

    json_policy: str | Unset = UNSET
    if not isinstance(policy, Unset):
        json_policy = str(policy)
    params["policy"] = json_policy

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/moves",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PaginatedMoveList | Problem | None:
    if response.status_code == 200:
        response_200 = PaginatedMoveList.from_dict(response.json())

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
) -> Response[PaginatedMoveList | Problem]:
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
    moved_after: datetime.datetime | Unset = UNSET,
    moved_before: datetime.datetime | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> Response[PaginatedMoveList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        moved_after (datetime.datetime | Unset):
        moved_before (datetime.datetime | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedMoveList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        moved_after=moved_after,
        moved_before=moved_before,
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
    moved_after: datetime.datetime | Unset = UNSET,
    moved_before: datetime.datetime | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> PaginatedMoveList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        moved_after (datetime.datetime | Unset):
        moved_before (datetime.datetime | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedMoveList | Problem
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        moved_after=moved_after,
        moved_before=moved_before,
        page_size=page_size,
        policy=policy,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    moved_after: datetime.datetime | Unset = UNSET,
    moved_before: datetime.datetime | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> Response[PaginatedMoveList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        moved_after (datetime.datetime | Unset):
        moved_before (datetime.datetime | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedMoveList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        moved_after=moved_after,
        moved_before=moved_before,
        page_size=page_size,
        policy=policy,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    moved_after: datetime.datetime | Unset = UNSET,
    moved_before: datetime.datetime | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
) -> PaginatedMoveList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        moved_after (datetime.datetime | Unset):
        moved_before (datetime.datetime | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedMoveList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            moved_after=moved_after,
            moved_before=moved_before,
            page_size=page_size,
            policy=policy,
        )
    ).parsed
