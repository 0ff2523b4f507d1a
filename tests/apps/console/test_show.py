from apps.console import show


def test_numbers_are_rounded_and_text_is_escaped() -> None:
    html = show.as_json({"loss": 0.123456789, "list": [1.0, 2], "text": "<b>"})
    assert "0.123457" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_in_brief_leaves_out_what_is_nested() -> None:
    value = {"noise": 0.0, "share": 0.38913606, "passed": False, "reason": "long", "engines": [{"a": 1}]}
    assert show.in_brief(value) == "noise 0, share 0.3891, passed False"
    assert show.in_brief(None) == ""


def test_long_text_says_how_much_is_missing() -> None:
    assert show.cut("abc", 3) == "abc"
    assert show.cut("abcd" * 1000, 4) == "abcd … [3,996 more characters]"


def test_contents_of_every_shape_become_text() -> None:
    assert show.content_text("hello") == "hello"
    assert show.content_text(None) == ""
    parts = [{"type": "text", "text": "look:"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert show.content_text(parts) == "look:\n[image_url]"
    assert show.content_text({"odd": 1}) == '{"odd": 1}'


def test_a_message_shows_its_tool_calls() -> None:
    value = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    shown = show.message(value)
    assert (shown["role"], shown["text"]) == ("assistant", "")
    assert '"name": "f"' in shown["calls"]


def test_rewards_and_states_say_it_in_words_too() -> None:
    assert ">+1<" in show.reward(1.0)
    assert ">-1<" in show.reward(-1)
    assert ">0<" not in show.reward(None)
    assert show.chip("refused") == '<span class="at-chip at-bad">refused</span>'
    assert show.chip("<i>") == '<span class="at-chip at-calm">&lt;i&gt;</span>'
