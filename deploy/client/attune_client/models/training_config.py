from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.training_config_advantage import (
    TrainingConfigAdvantage,
    check_training_config_advantage,
)
from ..models.training_config_aggregation import (
    TrainingConfigAggregation,
    check_training_config_aggregation,
)
from ..models.training_config_behaviour_cap import (
    TrainingConfigBehaviourCap,
    check_training_config_behaviour_cap,
)
from ..models.training_config_exploration import (
    TrainingConfigExploration,
    check_training_config_exploration,
)
from ..models.training_config_geometric_guard import (
    TrainingConfigGeometricGuard,
    check_training_config_geometric_guard,
)
from ..models.training_config_kl_kind import (
    TrainingConfigKlKind,
    check_training_config_kl_kind,
)
from ..models.training_config_method import (
    TrainingConfigMethod,
    check_training_config_method,
)
from ..models.training_config_opd_kind import (
    TrainingConfigOpdKind,
    check_training_config_opd_kind,
)
from ..models.training_config_opd_teacher import (
    TrainingConfigOpdTeacher,
    check_training_config_opd_teacher,
)
from ..models.training_config_order import (
    TrainingConfigOrder,
    check_training_config_order,
)
from ..models.training_config_past_staleness import (
    TrainingConfigPastStaleness,
    check_training_config_past_staleness,
)
from ..models.training_config_policy_form import (
    TrainingConfigPolicyForm,
    check_training_config_policy_form,
)
from ..models.training_config_prox import TrainingConfigProx, check_training_config_prox
from ..models.training_config_schedule import (
    TrainingConfigSchedule,
    check_training_config_schedule,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="TrainingConfig")


@_attrs_define
class TrainingConfig:
    """
    Attributes:
        lr (float | Unset):
        batch_size (int | Unset):
        flush_s (float | Unset):
        max_staleness (int | Unset):
        past_staleness (TrainingConfigPastStaleness | Unset):
        order (TrainingConfigOrder | Unset):
        buffer (int | Unset):
        window (float | Unset):
        exploration (TrainingConfigExploration | Unset):
        temperature_low (float | Unset):
        temperature_high (float | Unset):
        temperature_step (float | Unset):
        method (TrainingConfigMethod | Unset):
        rl_weight (float | Unset):
        opd_weight (float | Unset):
        kl_weight (float | Unset):
        kl_kind (TrainingConfigKlKind | Unset):
        policy_form (TrainingConfigPolicyForm | Unset):
        prox (TrainingConfigProx | Unset):
        aggregation (TrainingConfigAggregation | Unset):
        constant_tokens (int | Unset):
        clip_low (float | Unset):
        clip_high (float | Unset):
        dual_clip (float | None | Unset):
        behaviour_cap (TrainingConfigBehaviourCap | Unset):
        behaviour_mask_above (float | Unset):
        behaviour_truncate_at (float | Unset):
        opsm_delta (float | None | Unset):
        geometric_guard (TrainingConfigGeometricGuard | Unset):
        geometric_low (float | Unset):
        geometric_high (float | Unset):
        opd_kind (TrainingConfigOpdKind | Unset):
        top_k (int | Unset):
        opd_teacher (TrainingConfigOpdTeacher | Unset):
        opd_clip (float | Unset):
        hints (int | Unset):
        advantage (TrainingConfigAdvantage | Unset):
        normalise (bool | Unset):
        baseline_decay (float | Unset):
        baseline_prior_weight (float | Unset):
        schedule (TrainingConfigSchedule | Unset):
        warmup_steps (int | Unset):
        schedule_steps (int | Unset):
        lr_floor (float | Unset):
        beta1 (float | Unset):
        beta2 (float | Unset):
        adam_eps (float | Unset):
        weight_decay (float | Unset):
        epochs (int | Unset):
        shadow_epochs (int | Unset):
        updates (int | Unset):
        grad_clip (float | Unset):
        max_grad_norm (float | Unset):
        min_ess (float | Unset):
        max_rollout_k3 (float | Unset):
        max_step_k3 (float | Unset):
        check_tokens (int | Unset):
        max_sequence_tokens (int | None | Unset):
        deadline_s (float | Unset):
        attempts (int | Unset):
        refusals (int | Unset):
        retention_days (int | None | Unset):
    """

    lr: float | Unset = UNSET
    batch_size: int | Unset = UNSET
    flush_s: float | Unset = UNSET
    max_staleness: int | Unset = UNSET
    past_staleness: TrainingConfigPastStaleness | Unset = UNSET
    order: TrainingConfigOrder | Unset = UNSET
    buffer: int | Unset = UNSET
    window: float | Unset = UNSET
    exploration: TrainingConfigExploration | Unset = UNSET
    temperature_low: float | Unset = UNSET
    temperature_high: float | Unset = UNSET
    temperature_step: float | Unset = UNSET
    method: TrainingConfigMethod | Unset = UNSET
    rl_weight: float | Unset = UNSET
    opd_weight: float | Unset = UNSET
    kl_weight: float | Unset = UNSET
    kl_kind: TrainingConfigKlKind | Unset = UNSET
    policy_form: TrainingConfigPolicyForm | Unset = UNSET
    prox: TrainingConfigProx | Unset = UNSET
    aggregation: TrainingConfigAggregation | Unset = UNSET
    constant_tokens: int | Unset = UNSET
    clip_low: float | Unset = UNSET
    clip_high: float | Unset = UNSET
    dual_clip: float | None | Unset = UNSET
    behaviour_cap: TrainingConfigBehaviourCap | Unset = UNSET
    behaviour_mask_above: float | Unset = UNSET
    behaviour_truncate_at: float | Unset = UNSET
    opsm_delta: float | None | Unset = UNSET
    geometric_guard: TrainingConfigGeometricGuard | Unset = UNSET
    geometric_low: float | Unset = UNSET
    geometric_high: float | Unset = UNSET
    opd_kind: TrainingConfigOpdKind | Unset = UNSET
    top_k: int | Unset = UNSET
    opd_teacher: TrainingConfigOpdTeacher | Unset = UNSET
    opd_clip: float | Unset = UNSET
    hints: int | Unset = UNSET
    advantage: TrainingConfigAdvantage | Unset = UNSET
    normalise: bool | Unset = UNSET
    baseline_decay: float | Unset = UNSET
    baseline_prior_weight: float | Unset = UNSET
    schedule: TrainingConfigSchedule | Unset = UNSET
    warmup_steps: int | Unset = UNSET
    schedule_steps: int | Unset = UNSET
    lr_floor: float | Unset = UNSET
    beta1: float | Unset = UNSET
    beta2: float | Unset = UNSET
    adam_eps: float | Unset = UNSET
    weight_decay: float | Unset = UNSET
    epochs: int | Unset = UNSET
    shadow_epochs: int | Unset = UNSET
    updates: int | Unset = UNSET
    grad_clip: float | Unset = UNSET
    max_grad_norm: float | Unset = UNSET
    min_ess: float | Unset = UNSET
    max_rollout_k3: float | Unset = UNSET
    max_step_k3: float | Unset = UNSET
    check_tokens: int | Unset = UNSET
    max_sequence_tokens: int | None | Unset = UNSET
    deadline_s: float | Unset = UNSET
    attempts: int | Unset = UNSET
    refusals: int | Unset = UNSET
    retention_days: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lr = self.lr

        batch_size = self.batch_size

        flush_s = self.flush_s

        max_staleness = self.max_staleness

        past_staleness: str | Unset = UNSET
        if not isinstance(self.past_staleness, Unset):
            past_staleness = self.past_staleness

        order: str | Unset = UNSET
        if not isinstance(self.order, Unset):
            order = self.order

        buffer = self.buffer

        window = self.window

        exploration: str | Unset = UNSET
        if not isinstance(self.exploration, Unset):
            exploration = self.exploration

        temperature_low = self.temperature_low

        temperature_high = self.temperature_high

        temperature_step = self.temperature_step

        method: str | Unset = UNSET
        if not isinstance(self.method, Unset):
            method = self.method

        rl_weight = self.rl_weight

        opd_weight = self.opd_weight

        kl_weight = self.kl_weight

        kl_kind: str | Unset = UNSET
        if not isinstance(self.kl_kind, Unset):
            kl_kind = self.kl_kind

        policy_form: str | Unset = UNSET
        if not isinstance(self.policy_form, Unset):
            policy_form = self.policy_form

        prox: str | Unset = UNSET
        if not isinstance(self.prox, Unset):
            prox = self.prox

        aggregation: str | Unset = UNSET
        if not isinstance(self.aggregation, Unset):
            aggregation = self.aggregation

        constant_tokens = self.constant_tokens

        clip_low = self.clip_low

        clip_high = self.clip_high

        dual_clip: float | None | Unset
        if isinstance(self.dual_clip, Unset):
            dual_clip = UNSET
        else:
            dual_clip = self.dual_clip

        behaviour_cap: str | Unset = UNSET
        if not isinstance(self.behaviour_cap, Unset):
            behaviour_cap = self.behaviour_cap

        behaviour_mask_above = self.behaviour_mask_above

        behaviour_truncate_at = self.behaviour_truncate_at

        opsm_delta: float | None | Unset
        if isinstance(self.opsm_delta, Unset):
            opsm_delta = UNSET
        else:
            opsm_delta = self.opsm_delta

        geometric_guard: str | Unset = UNSET
        if not isinstance(self.geometric_guard, Unset):
            geometric_guard = self.geometric_guard

        geometric_low = self.geometric_low

        geometric_high = self.geometric_high

        opd_kind: str | Unset = UNSET
        if not isinstance(self.opd_kind, Unset):
            opd_kind = self.opd_kind

        top_k = self.top_k

        opd_teacher: str | Unset = UNSET
        if not isinstance(self.opd_teacher, Unset):
            opd_teacher = self.opd_teacher

        opd_clip = self.opd_clip

        hints = self.hints

        advantage: str | Unset = UNSET
        if not isinstance(self.advantage, Unset):
            advantage = self.advantage

        normalise = self.normalise

        baseline_decay = self.baseline_decay

        baseline_prior_weight = self.baseline_prior_weight

        schedule: str | Unset = UNSET
        if not isinstance(self.schedule, Unset):
            schedule = self.schedule

        warmup_steps = self.warmup_steps

        schedule_steps = self.schedule_steps

        lr_floor = self.lr_floor

        beta1 = self.beta1

        beta2 = self.beta2

        adam_eps = self.adam_eps

        weight_decay = self.weight_decay

        epochs = self.epochs

        shadow_epochs = self.shadow_epochs

        updates = self.updates

        grad_clip = self.grad_clip

        max_grad_norm = self.max_grad_norm

        min_ess = self.min_ess

        max_rollout_k3 = self.max_rollout_k3

        max_step_k3 = self.max_step_k3

        check_tokens = self.check_tokens

        max_sequence_tokens: int | None | Unset
        if isinstance(self.max_sequence_tokens, Unset):
            max_sequence_tokens = UNSET
        else:
            max_sequence_tokens = self.max_sequence_tokens

        deadline_s = self.deadline_s

        attempts = self.attempts

        refusals = self.refusals

        retention_days: int | None | Unset
        if isinstance(self.retention_days, Unset):
            retention_days = UNSET
        else:
            retention_days = self.retention_days

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if lr is not UNSET:
            field_dict["lr"] = lr
        if batch_size is not UNSET:
            field_dict["batch_size"] = batch_size
        if flush_s is not UNSET:
            field_dict["flush_s"] = flush_s
        if max_staleness is not UNSET:
            field_dict["max_staleness"] = max_staleness
        if past_staleness is not UNSET:
            field_dict["past_staleness"] = past_staleness
        if order is not UNSET:
            field_dict["order"] = order
        if buffer is not UNSET:
            field_dict["buffer"] = buffer
        if window is not UNSET:
            field_dict["window"] = window
        if exploration is not UNSET:
            field_dict["exploration"] = exploration
        if temperature_low is not UNSET:
            field_dict["temperature_low"] = temperature_low
        if temperature_high is not UNSET:
            field_dict["temperature_high"] = temperature_high
        if temperature_step is not UNSET:
            field_dict["temperature_step"] = temperature_step
        if method is not UNSET:
            field_dict["method"] = method
        if rl_weight is not UNSET:
            field_dict["rl_weight"] = rl_weight
        if opd_weight is not UNSET:
            field_dict["opd_weight"] = opd_weight
        if kl_weight is not UNSET:
            field_dict["kl_weight"] = kl_weight
        if kl_kind is not UNSET:
            field_dict["kl_kind"] = kl_kind
        if policy_form is not UNSET:
            field_dict["policy_form"] = policy_form
        if prox is not UNSET:
            field_dict["prox"] = prox
        if aggregation is not UNSET:
            field_dict["aggregation"] = aggregation
        if constant_tokens is not UNSET:
            field_dict["constant_tokens"] = constant_tokens
        if clip_low is not UNSET:
            field_dict["clip_low"] = clip_low
        if clip_high is not UNSET:
            field_dict["clip_high"] = clip_high
        if dual_clip is not UNSET:
            field_dict["dual_clip"] = dual_clip
        if behaviour_cap is not UNSET:
            field_dict["behaviour_cap"] = behaviour_cap
        if behaviour_mask_above is not UNSET:
            field_dict["behaviour_mask_above"] = behaviour_mask_above
        if behaviour_truncate_at is not UNSET:
            field_dict["behaviour_truncate_at"] = behaviour_truncate_at
        if opsm_delta is not UNSET:
            field_dict["opsm_delta"] = opsm_delta
        if geometric_guard is not UNSET:
            field_dict["geometric_guard"] = geometric_guard
        if geometric_low is not UNSET:
            field_dict["geometric_low"] = geometric_low
        if geometric_high is not UNSET:
            field_dict["geometric_high"] = geometric_high
        if opd_kind is not UNSET:
            field_dict["opd_kind"] = opd_kind
        if top_k is not UNSET:
            field_dict["top_k"] = top_k
        if opd_teacher is not UNSET:
            field_dict["opd_teacher"] = opd_teacher
        if opd_clip is not UNSET:
            field_dict["opd_clip"] = opd_clip
        if hints is not UNSET:
            field_dict["hints"] = hints
        if advantage is not UNSET:
            field_dict["advantage"] = advantage
        if normalise is not UNSET:
            field_dict["normalise"] = normalise
        if baseline_decay is not UNSET:
            field_dict["baseline_decay"] = baseline_decay
        if baseline_prior_weight is not UNSET:
            field_dict["baseline_prior_weight"] = baseline_prior_weight
        if schedule is not UNSET:
            field_dict["schedule"] = schedule
        if warmup_steps is not UNSET:
            field_dict["warmup_steps"] = warmup_steps
        if schedule_steps is not UNSET:
            field_dict["schedule_steps"] = schedule_steps
        if lr_floor is not UNSET:
            field_dict["lr_floor"] = lr_floor
        if beta1 is not UNSET:
            field_dict["beta1"] = beta1
        if beta2 is not UNSET:
            field_dict["beta2"] = beta2
        if adam_eps is not UNSET:
            field_dict["adam_eps"] = adam_eps
        if weight_decay is not UNSET:
            field_dict["weight_decay"] = weight_decay
        if epochs is not UNSET:
            field_dict["epochs"] = epochs
        if shadow_epochs is not UNSET:
            field_dict["shadow_epochs"] = shadow_epochs
        if updates is not UNSET:
            field_dict["updates"] = updates
        if grad_clip is not UNSET:
            field_dict["grad_clip"] = grad_clip
        if max_grad_norm is not UNSET:
            field_dict["max_grad_norm"] = max_grad_norm
        if min_ess is not UNSET:
            field_dict["min_ess"] = min_ess
        if max_rollout_k3 is not UNSET:
            field_dict["max_rollout_k3"] = max_rollout_k3
        if max_step_k3 is not UNSET:
            field_dict["max_step_k3"] = max_step_k3
        if check_tokens is not UNSET:
            field_dict["check_tokens"] = check_tokens
        if max_sequence_tokens is not UNSET:
            field_dict["max_sequence_tokens"] = max_sequence_tokens
        if deadline_s is not UNSET:
            field_dict["deadline_s"] = deadline_s
        if attempts is not UNSET:
            field_dict["attempts"] = attempts
        if refusals is not UNSET:
            field_dict["refusals"] = refusals
        if retention_days is not UNSET:
            field_dict["retention_days"] = retention_days

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        lr = d.pop("lr", UNSET)

        batch_size = d.pop("batch_size", UNSET)

        flush_s = d.pop("flush_s", UNSET)

        max_staleness = d.pop("max_staleness", UNSET)

        _past_staleness = d.pop("past_staleness", UNSET)
        past_staleness: TrainingConfigPastStaleness | Unset
        if isinstance(_past_staleness, Unset):
            past_staleness = UNSET
        else:
            past_staleness = check_training_config_past_staleness(_past_staleness)

        _order = d.pop("order", UNSET)
        order: TrainingConfigOrder | Unset
        if isinstance(_order, Unset):
            order = UNSET
        else:
            order = check_training_config_order(_order)

        buffer = d.pop("buffer", UNSET)

        window = d.pop("window", UNSET)

        _exploration = d.pop("exploration", UNSET)
        exploration: TrainingConfigExploration | Unset
        if isinstance(_exploration, Unset):
            exploration = UNSET
        else:
            exploration = check_training_config_exploration(_exploration)

        temperature_low = d.pop("temperature_low", UNSET)

        temperature_high = d.pop("temperature_high", UNSET)

        temperature_step = d.pop("temperature_step", UNSET)

        _method = d.pop("method", UNSET)
        method: TrainingConfigMethod | Unset
        if isinstance(_method, Unset):
            method = UNSET
        else:
            method = check_training_config_method(_method)

        rl_weight = d.pop("rl_weight", UNSET)

        opd_weight = d.pop("opd_weight", UNSET)

        kl_weight = d.pop("kl_weight", UNSET)

        _kl_kind = d.pop("kl_kind", UNSET)
        kl_kind: TrainingConfigKlKind | Unset
        if isinstance(_kl_kind, Unset):
            kl_kind = UNSET
        else:
            kl_kind = check_training_config_kl_kind(_kl_kind)

        _policy_form = d.pop("policy_form", UNSET)
        policy_form: TrainingConfigPolicyForm | Unset
        if isinstance(_policy_form, Unset):
            policy_form = UNSET
        else:
            policy_form = check_training_config_policy_form(_policy_form)

        _prox = d.pop("prox", UNSET)
        prox: TrainingConfigProx | Unset
        if isinstance(_prox, Unset):
            prox = UNSET
        else:
            prox = check_training_config_prox(_prox)

        _aggregation = d.pop("aggregation", UNSET)
        aggregation: TrainingConfigAggregation | Unset
        if isinstance(_aggregation, Unset):
            aggregation = UNSET
        else:
            aggregation = check_training_config_aggregation(_aggregation)

        constant_tokens = d.pop("constant_tokens", UNSET)

        clip_low = d.pop("clip_low", UNSET)

        clip_high = d.pop("clip_high", UNSET)

        def _parse_dual_clip(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        dual_clip = _parse_dual_clip(d.pop("dual_clip", UNSET))

        _behaviour_cap = d.pop("behaviour_cap", UNSET)
        behaviour_cap: TrainingConfigBehaviourCap | Unset
        if isinstance(_behaviour_cap, Unset):
            behaviour_cap = UNSET
        else:
            behaviour_cap = check_training_config_behaviour_cap(_behaviour_cap)

        behaviour_mask_above = d.pop("behaviour_mask_above", UNSET)

        behaviour_truncate_at = d.pop("behaviour_truncate_at", UNSET)

        def _parse_opsm_delta(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        opsm_delta = _parse_opsm_delta(d.pop("opsm_delta", UNSET))

        _geometric_guard = d.pop("geometric_guard", UNSET)
        geometric_guard: TrainingConfigGeometricGuard | Unset
        if isinstance(_geometric_guard, Unset):
            geometric_guard = UNSET
        else:
            geometric_guard = check_training_config_geometric_guard(_geometric_guard)

        geometric_low = d.pop("geometric_low", UNSET)

        geometric_high = d.pop("geometric_high", UNSET)

        _opd_kind = d.pop("opd_kind", UNSET)
        opd_kind: TrainingConfigOpdKind | Unset
        if isinstance(_opd_kind, Unset):
            opd_kind = UNSET
        else:
            opd_kind = check_training_config_opd_kind(_opd_kind)

        top_k = d.pop("top_k", UNSET)

        _opd_teacher = d.pop("opd_teacher", UNSET)
        opd_teacher: TrainingConfigOpdTeacher | Unset
        if isinstance(_opd_teacher, Unset):
            opd_teacher = UNSET
        else:
            opd_teacher = check_training_config_opd_teacher(_opd_teacher)

        opd_clip = d.pop("opd_clip", UNSET)

        hints = d.pop("hints", UNSET)

        _advantage = d.pop("advantage", UNSET)
        advantage: TrainingConfigAdvantage | Unset
        if isinstance(_advantage, Unset):
            advantage = UNSET
        else:
            advantage = check_training_config_advantage(_advantage)

        normalise = d.pop("normalise", UNSET)

        baseline_decay = d.pop("baseline_decay", UNSET)

        baseline_prior_weight = d.pop("baseline_prior_weight", UNSET)

        _schedule = d.pop("schedule", UNSET)
        schedule: TrainingConfigSchedule | Unset
        if isinstance(_schedule, Unset):
            schedule = UNSET
        else:
            schedule = check_training_config_schedule(_schedule)

        warmup_steps = d.pop("warmup_steps", UNSET)

        schedule_steps = d.pop("schedule_steps", UNSET)

        lr_floor = d.pop("lr_floor", UNSET)

        beta1 = d.pop("beta1", UNSET)

        beta2 = d.pop("beta2", UNSET)

        adam_eps = d.pop("adam_eps", UNSET)

        weight_decay = d.pop("weight_decay", UNSET)

        epochs = d.pop("epochs", UNSET)

        shadow_epochs = d.pop("shadow_epochs", UNSET)

        updates = d.pop("updates", UNSET)

        grad_clip = d.pop("grad_clip", UNSET)

        max_grad_norm = d.pop("max_grad_norm", UNSET)

        min_ess = d.pop("min_ess", UNSET)

        max_rollout_k3 = d.pop("max_rollout_k3", UNSET)

        max_step_k3 = d.pop("max_step_k3", UNSET)

        check_tokens = d.pop("check_tokens", UNSET)

        def _parse_max_sequence_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_sequence_tokens = _parse_max_sequence_tokens(d.pop("max_sequence_tokens", UNSET))

        deadline_s = d.pop("deadline_s", UNSET)

        attempts = d.pop("attempts", UNSET)

        refusals = d.pop("refusals", UNSET)

        def _parse_retention_days(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_days = _parse_retention_days(d.pop("retention_days", UNSET))

        training_config = cls(
            lr=lr,
            batch_size=batch_size,
            flush_s=flush_s,
            max_staleness=max_staleness,
            past_staleness=past_staleness,
            order=order,
            buffer=buffer,
            window=window,
            exploration=exploration,
            temperature_low=temperature_low,
            temperature_high=temperature_high,
            temperature_step=temperature_step,
            method=method,
            rl_weight=rl_weight,
            opd_weight=opd_weight,
            kl_weight=kl_weight,
            kl_kind=kl_kind,
            policy_form=policy_form,
            prox=prox,
            aggregation=aggregation,
            constant_tokens=constant_tokens,
            clip_low=clip_low,
            clip_high=clip_high,
            dual_clip=dual_clip,
            behaviour_cap=behaviour_cap,
            behaviour_mask_above=behaviour_mask_above,
            behaviour_truncate_at=behaviour_truncate_at,
            opsm_delta=opsm_delta,
            geometric_guard=geometric_guard,
            geometric_low=geometric_low,
            geometric_high=geometric_high,
            opd_kind=opd_kind,
            top_k=top_k,
            opd_teacher=opd_teacher,
            opd_clip=opd_clip,
            hints=hints,
            advantage=advantage,
            normalise=normalise,
            baseline_decay=baseline_decay,
            baseline_prior_weight=baseline_prior_weight,
            schedule=schedule,
            warmup_steps=warmup_steps,
            schedule_steps=schedule_steps,
            lr_floor=lr_floor,
            beta1=beta1,
            beta2=beta2,
            adam_eps=adam_eps,
            weight_decay=weight_decay,
            epochs=epochs,
            shadow_epochs=shadow_epochs,
            updates=updates,
            grad_clip=grad_clip,
            max_grad_norm=max_grad_norm,
            min_ess=min_ess,
            max_rollout_k3=max_rollout_k3,
            max_step_k3=max_step_k3,
            check_tokens=check_tokens,
            max_sequence_tokens=max_sequence_tokens,
            deadline_s=deadline_s,
            attempts=attempts,
            refusals=refusals,
            retention_days=retention_days,
        )

        training_config.additional_properties = d
        return training_config

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
