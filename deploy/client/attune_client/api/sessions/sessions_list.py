import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.paginated_session_list import PaginatedSessionList
from ...models.problem import Problem
from ...models.sessions_list_kind import SessionsListKind
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    begun_after: datetime.datetime | Unset = UNSET,
    begun_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    end_user: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    kind: SessionsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
    user: UUID | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_begun_after: str | Unset = UNSET
    if not isinstance(begun_after, Unset):
        json_begun_after = begun_after.isoformat()
    params["begun_after"] = json_begun_after

    json_begun_before: str | Unset = UNSET
    if not isinstance(begun_before, Unset):
        json_begun_before = begun_before.isoformat()
    params["begun_before"] = json_begun_before

    params["cursor"] = cursor

    params["end_user"] = end_user

    params["external_id"] = external_id

    json_kind: str | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = kind

    params["kind"] = json_kind

    params["page_size"] = page_size

    json_policy: str | Unset = UNSET
    if not isinstance(policy, Unset):
        json_policy = str(policy)
    params["policy"] = json_policy

    json_user: str | Unset = UNSET
    if not isinstance(user, Unset):
        json_user = str(user)
    params["user"] = json_user

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PaginatedSessionList | Problem | None:
    if response.status_code == 200:
        response_200 = PaginatedSessionList.from_dict(response.json())

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
) -> Response[PaginatedSessionList | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    begun_after: datetime.datetime | Unset = UNSET,
    begun_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    end_user: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    kind: SessionsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
    user: UUID | Unset = UNSET,
) -> Response[PaginatedSessionList | Problem]:
    """List them, newest first.

    Args:
        begun_after (datetime.datetime | Unset):
        begun_before (datetime.datetime | Unset):
        cursor (str | Unset):
        end_user (str | Unset):
        external_id (str | Unset):
        kind (SessionsListKind | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):
        user (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedSessionList | Problem]
    """

    kwargs = _get_kwargs(
        begun_after=begun_after,
        begun_before=begun_before,
        cursor=cursor,
        end_user=end_user,
        external_id=external_id,
        kind=kind,
        page_size=page_size,
        policy=policy,
        user=user,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    begun_after: datetime.datetime | Unset = UNSET,
    begun_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    end_user: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    kind: SessionsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
    user: UUID | Unset = UNSET,
) -> PaginatedSessionList | Problem | None:
    """List them, newest first.

    Args:
        begun_after (datetime.datetime | Unset):
        begun_before (datetime.datetime | Unset):
        cursor (str | Unset):
        end_user (str | Unset):
        external_id (str | Unset):
        kind (SessionsListKind | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):
        user (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedSessionList | Problem
    """

    return sync_detailed(
        client=client,
        begun_after=begun_after,
        begun_before=begun_before,
        cursor=cursor,
        end_user=end_user,
        external_id=external_id,
        kind=kind,
        page_size=page_size,
        policy=policy,
        user=user,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    begun_after: datetime.datetime | Unset = UNSET,
    begun_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    end_user: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    kind: SessionsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
    user: UUID | Unset = UNSET,
) -> Response[PaginatedSessionList | Problem]:
    """List them, newest first.

    Args:
        begun_after (datetime.datetime | Unset):
        begun_before (datetime.datetime | Unset):
        cursor (str | Unset):
        end_user (str | Unset):
        external_id (str | Unset):
        kind (SessionsListKind | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):
        user (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedSessionList | Problem]
    """

    kwargs = _get_kwargs(
        begun_after=begun_after,
        begun_before=begun_before,
        cursor=cursor,
        end_user=end_user,
        external_id=external_id,
        kind=kind,
        page_size=page_size,
        policy=policy,
        user=user,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    begun_after: datetime.datetime | Unset = UNSET,
    begun_before: datetime.datetime | Unset = UNSET,
    cursor: str | Unset = UNSET,
    end_user: str | Unset = UNSET,
    external_id: str | Unset = UNSET,
    kind: SessionsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    policy: UUID | Unset = UNSET,
    user: UUID | Unset = UNSET,
) -> PaginatedSessionList | Problem | None:
    """List them, newest first.

    Args:
        begun_after (datetime.datetime | Unset):
        begun_before (datetime.datetime | Unset):
        cursor (str | Unset):
        end_user (str | Unset):
        external_id (str | Unset):
        kind (SessionsListKind | Unset):
        page_size (int | Unset):  Default: 50.
        policy (UUID | Unset):
        user (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedSessionList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            begun_after=begun_after,
            begun_before=begun_before,
            cursor=cursor,
            end_user=end_user,
            external_id=external_id,
            kind=kind,
            page_size=page_size,
            policy=policy,
            user=user,
        )
    ).parsed
