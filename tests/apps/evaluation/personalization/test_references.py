"""The bare base is measured once for a user, and again for another model."""

from dataclasses import replace
from pathlib import Path

from apps.evaluation.personalization.course import carry_out
from apps.evaluation.personalization.journal import Journal, past_of, read
from apps.evaluation.personalization.plan import Plan, RunKey, reference_of
from apps.evaluation.personalization.references import model_hash
from tests.apps.evaluation.personalization.fake_world import QUICK, USER, FakeWorld, Silent, lines_of, plan_of

REFERENCE = reference_of(USER.name)


async def _done(world: FakeWorld, folder: Path, out: str, plan: Plan) -> Silent:
    progress = Silent()
    with Journal(folder / out, code="abc", machine="2 cores") as journal:
        assert await carry_out(
            plan,
            journal=journal,
            platform=world,
            progress=progress,
            references=folder / "home" / "references.jsonl",
        )
    return progress


def _asked(world: FakeWorld) -> int:
    return sum(len(mind.requests) for slug, mind in world.minds.items() if slug.startswith("reference"))


async def test_seeds_methods_and_later_benchmarks_share_it(tmp_path: Path) -> None:
    plan = replace(plan_of("frozen", "memory", seeds=(1, 2)), model="m1")
    async with FakeWorld() as world:
        await _done(world, tmp_path, "one.jsonl", plan)
        assert _asked(world) == 240
        past = past_of(read(tmp_path / "one.jsonl"), plan)
        # what never trains is the bare base: not a reply was written for it again
        for seed in (1, 2):
            held = past[RunKey(seed, USER.name, "frozen")].steps["held_out"]
            assert (held["passed"], held["of"], held["same_as"]) == (0, 60, str(REFERENCE))
        other = replace(plan_of("opd", terms=replace(QUICK, mode="once")), model="m1")
        progress = await _done(world, tmp_path, "two.jsonl", other)
    assert _asked(world) == 240
    assert REFERENCE not in {key for key, _ in progress.steps}
    assert past_of(read(tmp_path / "two.jsonl"), other)[REFERENCE].steps["hinted"]["passed"] == 180


async def test_another_model_is_measured_again_into_the_same_files(tmp_path: Path) -> None:
    first, second = (replace(plan_of("frozen"), model=name) for name in ("m1", "m2"))
    async with FakeWorld() as world:
        await _done(world, tmp_path, "one.jsonl", first)
        await _done(world, tmp_path, "one.jsonl", second)
        assert _asked(world) == 480
        with Journal(tmp_path / "one.jsonl", code="abc", machine="2 cores") as journal:
            assert len(lines_of(journal, REFERENCE, "hinted")) == 2
        await _done(world, tmp_path, "three.jsonl", first)
        assert _asked(world) == 480


async def test_without_a_model_nothing_is_kept_for_others(tmp_path: Path) -> None:
    async with FakeWorld() as world:
        await _done(world, tmp_path, "one.jsonl", plan_of("frozen"))
    assert not (tmp_path / "home").exists()


def test_a_models_hash_is_of_its_files(tmp_path: Path) -> None:
    made = []
    for name, weights in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        assert model_hash(tmp_path / name) == ""
        model_hash.cache_clear()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
        made.append(model_hash(tmp_path / name))
    assert made[0] == made[1] != made[2]
    assert [len(one) for one in made] == [16] * 3


async def test_a_run_that_waited_is_measured_as_it_was_at_the_end_of_the_wait(tmp_path: Path) -> None:
    """Killed in the examination after the wait: the same tenant, the same version, no second complaint."""
    plan = plan_of("opd", terms=replace(QUICK, mode="once"))
    key, path = plan.runs()[0], tmp_path / "state.jsonl"
    async with FakeWorld(per_version=1, learned_at=1) as world:
        await _done(world, tmp_path, "state.jsonl", plan)
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [
            line
            for line in lines
            if b'"held_out"' not in line and not (b'"ended"' in line and b"opd/" in line)
        ]
        assert len(kept) == len(lines) - 2
        path.write_bytes(b"".join(kept))
        mind = next(mind for slug, mind in world.minds.items() if slug.startswith("opd"))
        mind.lessons += 5  # later versions, should anything have gone on
        await _done(world, tmp_path, "state.jsonl", plan)
    with Journal(path, code="abc", machine="2 cores") as journal:
        assert (len(lines_of(journal, key, "begun")), len(lines_of(journal, key, "told"))) == (1, 1)
        (held,) = lines_of(journal, key, "held_out")
    assert (held["version"], held["passed"]) == (1, 60)
    assert mind.resting
