"""The judges that can be configured: `JUDGE_BACKEND` names one."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from apps.judging.backends.cue import CueJudge
from apps.judging.backends.openai_compatible import OpenAICompatibleJudge
from apps.judging.judge import Judge
from apps.judging.rules import Rules


def configured_judge(rules: Rules) -> Judge:
    """Return the judge of the settings, under a policy's rules."""
    if settings.JUDGE_BACKEND == "cue":
        return CueJudge()
    if settings.JUDGE_BACKEND == "openai":
        if not (settings.JUDGE_URL and settings.JUDGE_MODEL):
            raise ImproperlyConfigured("JUDGE_BACKEND=openai needs JUDGE_URL and JUDGE_MODEL.")
        return OpenAICompatibleJudge(
            url=settings.JUDGE_URL,
            model=settings.JUDGE_MODEL,
            api_key=settings.JUDGE_API_KEY,
            votes=rules.votes,
            temperature=rules.temperature,
            rubric=rules.rubric,
            deadline_s=settings.JUDGE_TIMEOUT_S,
            concurrency=settings.JUDGE_CONCURRENCY,
        )
    raise ImproperlyConfigured(f"JUDGE_BACKEND={settings.JUDGE_BACKEND!r} is neither cue nor openai.")
