import asyncio
import uuid

import pytest
from asgiref.sync import sync_to_async

from apps.adapters.models import Policy
from kernel.errors import TenantScopeRequired
from kernel.ids import uuid7
from kernel.outbox import enqueue
from kernel.tenancy import Scope, current_scope, system_scope, tenant_scope

A, B = uuid7(), uuid7()


def test_scopes_nest_and_end() -> None:
    assert current_scope() is None
    with tenant_scope(A):
        assert current_scope() == Scope(A)
        with system_scope("why"):
            assert current_scope() == Scope(None, "why")
            with tenant_scope(str(B)):
                assert current_scope() == Scope(B)
        assert current_scope() == Scope(A)
    assert current_scope() is None


def test_a_scope_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), tenant_scope(A):
        _ = 1 / 0
    assert current_scope() is None


def test_what_is_no_uuid_is_no_tenant() -> None:
    with pytest.raises(ValueError, match="badly formed"), tenant_scope("demo"):
        pass


async def test_a_scope_follows_into_threads_and_not_into_other_tasks() -> None:
    seen: dict[str, object] = {}
    entered = asyncio.Event()
    leave = asyncio.Event()

    async def inside() -> None:
        with tenant_scope(A):
            seen["thread"] = await sync_to_async(current_scope)()
            entered.set()
            await leave.wait()

    async def beside() -> None:
        await entered.wait()
        seen["beside"] = current_scope()
        leave.set()

    await asyncio.gather(inside(), beside())
    assert seen == {"thread": Scope(A), "beside": None}


def test_a_tenants_rows_without_a_scope_are_a_bug_and_not_an_empty_list() -> None:
    with pytest.raises(TenantScopeRequired, match=r"adapters\.Policy"):
        Policy.objects.all()


def test_managers_filter_by_the_tenant_in_scope() -> None:
    with tenant_scope(A):
        assert f'"tenant_id" = {A}' in str(Policy.objects.all().query)
    with system_scope("test"):
        assert "WHERE" not in str(Policy.objects.all().query)


def test_work_cannot_be_announced_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="outside a transaction"):
        enqueue(task="workers.x", queue="ops", tenant_id=A, kwargs={})


def test_work_cannot_be_announced_to_an_unknown_queue() -> None:
    with pytest.raises(ValueError, match="'elsewhere' is not one of"):
        enqueue(task="workers.x", queue="elsewhere", tenant_id=A, kwargs={})


def test_ids_grow_with_time() -> None:
    ids = [uuid7() for _ in range(1000)]
    assert ids == sorted(ids)
    assert {one.version for one in ids} == {7}
    assert all(isinstance(one, uuid.UUID) for one in ids)
