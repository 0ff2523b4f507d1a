"""Contains all the data models used in inputs/outputs"""

from .attempt import Attempt
from .config import Config
from .config_change_request import ConfigChangeRequest
from .crossing import Crossing
from .crossing_action_enum import CrossingActionEnum
from .current_config import CurrentConfig
from .deletion import Deletion
from .deletion_deleted import DeletionDeleted
from .deletion_state_enum import DeletionStateEnum
from .deliveries_list_state import DeliveriesListState
from .delivery import Delivery
from .delivery_state_enum import DeliveryStateEnum
from .drift_reading import DriftReading
from .drift_readings_list_gauge import DriftReadingsListGauge
from .event_enum import EventEnum
from .events_enum import EventsEnum
from .evidence import Evidence
from .export import Export
from .export_state_enum import ExportStateEnum
from .feedback import Feedback
from .gate import Gate
from .gauge_enum import GaugeEnum
from .hint import Hint
from .invitation import Invitation
from .judge_settings import JudgeSettings
from .judge_settings_request import JudgeSettingsRequest
from .judged_enum import JudgedEnum
from .judgement import Judgement
from .judgement_source_enum import JudgementSourceEnum
from .judgement_state_enum import JudgementStateEnum
from .judgements_list_reward import JudgementsListReward
from .judgements_list_state import JudgementsListState
from .judging import Judging
from .key import Key
from .key_policies_request import KeyPoliciesRequest
from .learned_from import LearnedFrom
from .limit import Limit
from .limit_request import LimitRequest
from .live_since import LiveSince
from .measure import Measure
from .measure_action_enum import MeasureActionEnum
from .member import Member
from .memory import Memory
from .memory_change_request import MemoryChangeRequest
from .memory_detail import MemoryDetail
from .memory_list_state import MemoryListState
from .memory_setting import MemorySetting
from .memory_setting_request import MemorySettingRequest
from .memory_source_enum import MemorySourceEnum
from .memory_state_enum import MemoryStateEnum
from .memory_use import MemoryUse
from .metrics import Metrics
from .metrics_retrieve_range import MetricsRetrieveRange
from .move import Move
from .new_deletion_request import NewDeletionRequest
from .new_feedback_request import NewFeedbackRequest
from .new_invitation_request import NewInvitationRequest
from .new_key_request import NewKeyRequest
from .new_memory_request import NewMemoryRequest
from .new_opt_out_request import NewOptOutRequest
from .new_policy_request import NewPolicyRequest
from .new_rubric_request import NewRubricRequest
from .new_run_request import NewRunRequest
from .new_view_request import NewViewRequest
from .new_webhook_request import NewWebhookRequest
from .opt_out import OptOut
from .paginated_config_list import PaginatedConfigList
from .paginated_crossing_list import PaginatedCrossingList
from .paginated_deletion_list import PaginatedDeletionList
from .paginated_delivery_list import PaginatedDeliveryList
from .paginated_drift_reading_list import PaginatedDriftReadingList
from .paginated_export_list import PaginatedExportList
from .paginated_feedback_list import PaginatedFeedbackList
from .paginated_invitation_list import PaginatedInvitationList
from .paginated_judgement_list import PaginatedJudgementList
from .paginated_key_list import PaginatedKeyList
from .paginated_member_list import PaginatedMemberList
from .paginated_memory_list import PaginatedMemoryList
from .paginated_move_list import PaginatedMoveList
from .paginated_opt_out_list import PaginatedOptOutList
from .paginated_policy_list import PaginatedPolicyList
from .paginated_rubric_list import PaginatedRubricList
from .paginated_run_list import PaginatedRunList
from .paginated_sample_list import PaginatedSampleList
from .paginated_session_list import PaginatedSessionList
from .paginated_turn_summary_list import PaginatedTurnSummaryList
from .paginated_version_list import PaginatedVersionList
from .paginated_view_list import PaginatedViewList
from .paginated_webhook_list import PaginatedWebhookList
from .personal_data_enum import PersonalDataEnum
from .pointer_request import PointerRequest
from .policy import Policy
from .policy_change_request import PolicyChangeRequest
from .policy_judging import PolicyJudging
from .policy_memory import PolicyMemory
from .preset import Preset
from .preset_enum import PresetEnum
from .problem import Problem
from .problem_errors_item import ProblemErrorsItem
from .prompt_source_enum import PromptSourceEnum
from .range_enum import RangeEnum
from .reward_point import RewardPoint
from .role_enum import RoleEnum
from .role_request import RoleRequest
from .rotation_request import RotationRequest
from .rubric import Rubric
from .rules import Rules
from .run import Run
from .run_state_enum import RunStateEnum
from .runs_list_state import RunsListState
from .sample import Sample
from .sample_state_enum import SampleStateEnum
from .samples_list_state import SamplesListState
from .scopes_enum import ScopesEnum
from .score_enum import ScoreEnum
from .secret import Secret
from .session import Session
from .sessions_list_kind import SessionsListKind
from .share import Share
from .side_enum import SideEnum
from .subject_enum import SubjectEnum
from .tenant import Tenant
from .tenant_judge_settings import TenantJudgeSettings
from .tenant_judge_settings_request import TenantJudgeSettingsRequest
from .tenant_request import TenantRequest
from .traffic_point import TrafficPoint
from .training_change import TrainingChange
from .training_change_advantage import TrainingChangeAdvantage
from .training_change_aggregation import TrainingChangeAggregation
from .training_change_behaviour_cap import TrainingChangeBehaviourCap
from .training_change_drift import TrainingChangeDrift
from .training_change_drift_additional_property import (
    TrainingChangeDriftAdditionalProperty,
)
from .training_change_exploration import TrainingChangeExploration
from .training_change_geometric_guard import TrainingChangeGeometricGuard
from .training_change_kl_kind import TrainingChangeKlKind
from .training_change_method import TrainingChangeMethod
from .training_change_opd_kind import TrainingChangeOpdKind
from .training_change_opd_teacher import TrainingChangeOpdTeacher
from .training_change_order import TrainingChangeOrder
from .training_change_past_staleness import TrainingChangePastStaleness
from .training_change_policy_form import TrainingChangePolicyForm
from .training_change_prox import TrainingChangeProx
from .training_change_schedule import TrainingChangeSchedule
from .training_config import TrainingConfig
from .training_config_advantage import TrainingConfigAdvantage
from .training_config_aggregation import TrainingConfigAggregation
from .training_config_behaviour_cap import TrainingConfigBehaviourCap
from .training_config_exploration import TrainingConfigExploration
from .training_config_geometric_guard import TrainingConfigGeometricGuard
from .training_config_kl_kind import TrainingConfigKlKind
from .training_config_method import TrainingConfigMethod
from .training_config_opd_kind import TrainingConfigOpdKind
from .training_config_opd_teacher import TrainingConfigOpdTeacher
from .training_config_order import TrainingConfigOrder
from .training_config_past_staleness import TrainingConfigPastStaleness
from .training_config_policy_form import TrainingConfigPolicyForm
from .training_config_prox import TrainingConfigProx
from .training_config_schedule import TrainingConfigSchedule
from .training_overrides import TrainingOverrides
from .training_overrides_advantage import TrainingOverridesAdvantage
from .training_overrides_aggregation import TrainingOverridesAggregation
from .training_overrides_behaviour_cap import TrainingOverridesBehaviourCap
from .training_overrides_drift import TrainingOverridesDrift
from .training_overrides_drift_additional_property import (
    TrainingOverridesDriftAdditionalProperty,
)
from .training_overrides_exploration import TrainingOverridesExploration
from .training_overrides_geometric_guard import TrainingOverridesGeometricGuard
from .training_overrides_kl_kind import TrainingOverridesKlKind
from .training_overrides_method import TrainingOverridesMethod
from .training_overrides_opd_kind import TrainingOverridesOpdKind
from .training_overrides_opd_teacher import TrainingOverridesOpdTeacher
from .training_overrides_order import TrainingOverridesOrder
from .training_overrides_past_staleness import TrainingOverridesPastStaleness
from .training_overrides_policy_form import TrainingOverridesPolicyForm
from .training_overrides_prox import TrainingOverridesProx
from .training_overrides_schedule import TrainingOverridesSchedule
from .turn import Turn
from .turn_kind_enum import TurnKindEnum
from .turn_state_enum import TurnStateEnum
from .turn_summary import TurnSummary
from .turns_list_kind import TurnsListKind
from .turns_list_state import TurnsListState
from .version import Version
from .version_state_enum import VersionStateEnum
from .versions_list_state import VersionsListState
from .view import View
from .view_change_request import ViewChangeRequest
from .view_filters import ViewFilters
from .view_filters_request import ViewFiltersRequest
from .vote import Vote
from .webhook import Webhook
from .webhook_change_request import WebhookChangeRequest
from .webhook_secret import WebhookSecret
from .within_enum import WithinEnum

__all__ = (
    "Attempt",
    "Config",
    "ConfigChangeRequest",
    "Crossing",
    "CrossingActionEnum",
    "CurrentConfig",
    "Deletion",
    "DeletionDeleted",
    "DeletionStateEnum",
    "DeliveriesListState",
    "Delivery",
    "DeliveryStateEnum",
    "DriftReading",
    "DriftReadingsListGauge",
    "EventEnum",
    "EventsEnum",
    "Evidence",
    "Export",
    "ExportStateEnum",
    "Feedback",
    "Gate",
    "GaugeEnum",
    "Hint",
    "Invitation",
    "JudgedEnum",
    "Judgement",
    "JudgementsListReward",
    "JudgementsListState",
    "JudgementSourceEnum",
    "JudgementStateEnum",
    "JudgeSettings",
    "JudgeSettingsRequest",
    "Judging",
    "Key",
    "KeyPoliciesRequest",
    "LearnedFrom",
    "Limit",
    "LimitRequest",
    "LiveSince",
    "Measure",
    "MeasureActionEnum",
    "Member",
    "Memory",
    "MemoryChangeRequest",
    "MemoryDetail",
    "MemoryListState",
    "MemorySetting",
    "MemorySettingRequest",
    "MemorySourceEnum",
    "MemoryStateEnum",
    "MemoryUse",
    "Metrics",
    "MetricsRetrieveRange",
    "Move",
    "NewDeletionRequest",
    "NewFeedbackRequest",
    "NewInvitationRequest",
    "NewKeyRequest",
    "NewMemoryRequest",
    "NewOptOutRequest",
    "NewPolicyRequest",
    "NewRubricRequest",
    "NewRunRequest",
    "NewViewRequest",
    "NewWebhookRequest",
    "OptOut",
    "PaginatedConfigList",
    "PaginatedCrossingList",
    "PaginatedDeletionList",
    "PaginatedDeliveryList",
    "PaginatedDriftReadingList",
    "PaginatedExportList",
    "PaginatedFeedbackList",
    "PaginatedInvitationList",
    "PaginatedJudgementList",
    "PaginatedKeyList",
    "PaginatedMemberList",
    "PaginatedMemoryList",
    "PaginatedMoveList",
    "PaginatedOptOutList",
    "PaginatedPolicyList",
    "PaginatedRubricList",
    "PaginatedRunList",
    "PaginatedSampleList",
    "PaginatedSessionList",
    "PaginatedTurnSummaryList",
    "PaginatedVersionList",
    "PaginatedViewList",
    "PaginatedWebhookList",
    "PersonalDataEnum",
    "PointerRequest",
    "Policy",
    "PolicyChangeRequest",
    "PolicyJudging",
    "PolicyMemory",
    "Preset",
    "PresetEnum",
    "Problem",
    "ProblemErrorsItem",
    "PromptSourceEnum",
    "RangeEnum",
    "RewardPoint",
    "RoleEnum",
    "RoleRequest",
    "RotationRequest",
    "Rubric",
    "Rules",
    "Run",
    "RunsListState",
    "RunStateEnum",
    "Sample",
    "SamplesListState",
    "SampleStateEnum",
    "ScopesEnum",
    "ScoreEnum",
    "Secret",
    "Session",
    "SessionsListKind",
    "Share",
    "SideEnum",
    "SubjectEnum",
    "Tenant",
    "TenantJudgeSettings",
    "TenantJudgeSettingsRequest",
    "TenantRequest",
    "TrafficPoint",
    "TrainingChange",
    "TrainingChangeAdvantage",
    "TrainingChangeAggregation",
    "TrainingChangeBehaviourCap",
    "TrainingChangeDrift",
    "TrainingChangeDriftAdditionalProperty",
    "TrainingChangeExploration",
    "TrainingChangeGeometricGuard",
    "TrainingChangeKlKind",
    "TrainingChangeMethod",
    "TrainingChangeOpdKind",
    "TrainingChangeOpdTeacher",
    "TrainingChangeOrder",
    "TrainingChangePastStaleness",
    "TrainingChangePolicyForm",
    "TrainingChangeProx",
    "TrainingChangeSchedule",
    "TrainingConfig",
    "TrainingConfigAdvantage",
    "TrainingConfigAggregation",
    "TrainingConfigBehaviourCap",
    "TrainingConfigExploration",
    "TrainingConfigGeometricGuard",
    "TrainingConfigKlKind",
    "TrainingConfigMethod",
    "TrainingConfigOpdKind",
    "TrainingConfigOpdTeacher",
    "TrainingConfigOrder",
    "TrainingConfigPastStaleness",
    "TrainingConfigPolicyForm",
    "TrainingConfigProx",
    "TrainingConfigSchedule",
    "TrainingOverrides",
    "TrainingOverridesAdvantage",
    "TrainingOverridesAggregation",
    "TrainingOverridesBehaviourCap",
    "TrainingOverridesDrift",
    "TrainingOverridesDriftAdditionalProperty",
    "TrainingOverridesExploration",
    "TrainingOverridesGeometricGuard",
    "TrainingOverridesKlKind",
    "TrainingOverridesMethod",
    "TrainingOverridesOpdKind",
    "TrainingOverridesOpdTeacher",
    "TrainingOverridesOrder",
    "TrainingOverridesPastStaleness",
    "TrainingOverridesPolicyForm",
    "TrainingOverridesProx",
    "TrainingOverridesSchedule",
    "Turn",
    "TurnKindEnum",
    "TurnsListKind",
    "TurnsListState",
    "TurnStateEnum",
    "TurnSummary",
    "Version",
    "VersionsListState",
    "VersionStateEnum",
    "View",
    "ViewChangeRequest",
    "ViewFilters",
    "ViewFiltersRequest",
    "Vote",
    "Webhook",
    "WebhookChangeRequest",
    "WebhookSecret",
    "WithinEnum",
)
