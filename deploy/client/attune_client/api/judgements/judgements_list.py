from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.judgements_list_reward import (
    JudgementsListReward,
)
from ...models.judgements_list_state import (
    JudgementsListState,
)
from ...models.paginated_judgement_list import PaginatedJudgementList
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    reward: JudgementsListReward | Unset = UNSET,
    state: JudgementsListState | Unset = UNSET,
    turn: UUID | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    json_reward: int | Unset = UNSET
    if not isinstance(reward, Unset):
        json_reward = reward

    params["reward"] = json_reward

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state

    params["state"] = json_state

    json_turn: str | Unset = UNSET
    if not isinstance(turn, Unset):
        json_turn = str(turn)
    params["turn"] = json_turn

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/judgements",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PaginatedJudgementList | Problem | None:
    if response.status_code == 200:
        response_200 = PaginatedJudgementList.from_dict(response.json())

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
) -> Response[PaginatedJudgementList | Problem]:
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
    reward: JudgementsListReward | Unset = UNSET,
    state: JudgementsListState | Unset = UNSET,
    turn: UUID | Unset = UNSET,
) -> Response[PaginatedJudgementList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        reward (JudgementsListReward | Unset):
        state (JudgementsListState | Unset):
        turn (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedJudgementList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        page_size=page_size,
        reward=reward,
        state=state,
        turn=turn,
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
    reward: JudgementsListReward | Unset = UNSET,
    state: JudgementsListState | Unset = UNSET,
    turn: UUID | Unset = UNSET,
) -> PaginatedJudgementList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        reward (JudgementsListReward | Unset):
        state (JudgementsListState | Unset):
        turn (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedJudgementList | Problem
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        page_size=page_size,
        reward=reward,
        state=state,
        turn=turn,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    reward: JudgementsListReward | Unset = UNSET,
    state: JudgementsListState | Unset = UNSET,
    turn: UUID | Unset = UNSET,
) -> Response[PaginatedJudgementList | Problem]:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        reward (JudgementsListReward | Unset):
        state (JudgementsListState | Unset):
        turn (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PaginatedJudgementList | Problem]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        page_size=page_size,
        reward=reward,
        state=state,
        turn=turn,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    reward: JudgementsListReward | Unset = UNSET,
    state: JudgementsListState | Unset = UNSET,
    turn: UUID | Unset = UNSET,
) -> PaginatedJudgementList | Problem | None:
    """List them, newest first.

    Args:
        cursor (str | Unset):
        page_size (int | Unset):  Default: 50.
        reward (JudgementsListReward | Unset):
        state (JudgementsListState | Unset):
        turn (UUID | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PaginatedJudgementList | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            page_size=page_size,
            reward=reward,
            state=state,
            turn=turn,
        )
    ).parsed
