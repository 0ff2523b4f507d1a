"""One session of a scripted user: ask, read the reply, complain or thank, leave."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from openai.types.chat import ChatCompletionMessageParam

from apps.evaluation.chat import Reply
from apps.evaluation.rules.verdict import Verdict
from apps.evaluation.users import Lines, Question, ScriptedUser

TEMPERATURE = 0.7
TURNS = 8
"""Messages of the user in one session, at most."""

Ask = Callable[[list[ChatCompletionMessageParam]], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply to a question, judged by the user's rule and, apart from it, for its topic."""

    question: Question
    reply: Reply
    verdict: Verdict
    on_topic: bool


def judge_reply(user: ScriptedUser, question: Question, reply: Reply) -> Answer:
    """Apply the rule and the topic guard."""
    return Answer(
        question=question,
        reply=reply,
        verdict=user.judge(question, text=reply.text, finish_reason=reply.finish_reason, tokens=reply.tokens),
        on_topic=user.on_topic(question, reply.text),
    )


@dataclass(frozen=True, slots=True)
class Talk:
    """A session that is over: the replies that were judged, the first one first."""

    answers: tuple[Answer, ...]
    satisfied: bool
    """Whether the last judged reply was right."""

    @property
    def passed(self) -> bool:
        """Whether the first reply was right."""
        return self.answers[0].verdict.passed

    @property
    def complaints(self) -> int:
        """How often the user complained: each complaint got a reply, and each reply a judgement."""
        return len(self.answers) - 1


async def hold_session(
    ask: Ask,
    user: ScriptedUser,
    lines: Lines,
    *,
    turns: int = TURNS,
    heard: Callable[[Answer], None] = lambda _answer: None,
) -> Talk:
    """Talk until a reply is right (then thank for it) or `turns` messages were said; `heard` gets each judged reply.

    Whatever `ask` raises ends the session.
    """
    messages: list[ChatCompletionMessageParam] = []
    answers: list[Answer] = []
    complaints = iter(lines.complaints)
    says, satisfied = lines.question.text, False
    for _ in range(turns):
        messages.append({"role": "user", "content": says})
        reply = await ask(messages)
        if satisfied:
            break
        messages.append({"role": "assistant", "content": reply.text})
        answers.append(judge_reply(user, lines.question, reply))
        heard(answers[-1])
        satisfied = answers[-1].verdict.passed
        following = lines.thanks if satisfied else next(complaints, None)
        if following is None:
            break
        says = following
    return Talk(tuple(answers), satisfied)
