from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.deliveries_list_state import (
    DeliveriesListState,
)
from ...models.paginated_delivery_list import PaginatedDeliveryList
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: UUID | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state

    params["state"] = json_state

    json_webhook: str | Unset = UNSET
    if not isinstance(webhook, Unset):
        json_webhook = str(webhook)
    params["webhook"] = json_webhook

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/deliveries",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PaginatedDeliveryList | Problem | None:
    if response.status_code == 200:
        response_200 = PaginatedDeliveryList.from_dict(response.json())

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
) -> Response[PaginatedDeliveryList | Problem]:
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
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: UUID | Unset = UNSET,
) -> Response[PaginatedDeliveryList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        state (DeliveriesListState | Unset):
        webhook (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedDeliveryList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        page_size=page_size,
        state=state,
        webhook=webhook,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: UUID | Unset = UNSET,
) -> PaginatedDeliveryList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        state (DeliveriesListState | Unset):
        webhook (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedDeliveryList | Problem
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        page_size=page_size,
        state=state,
        webhook=webhook,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: UUID | Unset = UNSET,
) -> Response[PaginatedDeliveryList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        state (DeliveriesListState | Unset):
        webhook (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedDeliveryList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        page_size=page_size,
        state=state,
        webhook=webhook,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: UUID | Unset = UNSET,
) -> PaginatedDeliveryList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        state (DeliveriesListState | Unset):
        webhook (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedDeliveryList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            page_size=page_size,
            state=state,
            webhook=webhook,
        )
    ).parsed
