// The playground: asks one or two versions, shows replies as text and as nothing else, stops, copies.
(() => {
  "use strict";

  const form = document.getElementById("playground");
  if (!form) return;
  const choices = JSON.parse(document.getElementById("choices").textContent);
  const field = (name) => form.elements[name];
  const status = document.getElementById("status");
  const talks = [...form.querySelectorAll(".talk")].map((section) => ({
    section,
    title: section.querySelector("h2"),
    log: section.querySelector(".log"),
    copies: section.querySelectorAll("[data-copy]"),
    messages: [],
    session: "",
    version: null, // a number, "live", or null: not shown
  }));
  const [left, right] = talks;
  let running = null;

  // -- what is chosen

  const policy = () => choices.policies[field("policy").value];

  function offer() {
    const {live, versions} = policy();
    const options = [["", "nothing"]];
    if (live !== 0) options.push(["0", "version 0, the bare base"]);
    for (const number of versions) if (number !== live) options.push([String(number), `version ${number}`]);
    field("beside").replaceChildren(...options.map(([value, label]) => new Option(label, value)));
    const named = choices.beside !== "" && options.some(([value]) => value === choices.beside);
    field("beside").value = named ? choices.beside : live !== 0 ? "0" : "";
    field("temperature").value = policy().temperature;
  }

  function anew() {
    stop();
    left.version = "live";
    right.version = field("beside").value === "" ? null : Number(field("beside").value);
    left.title.textContent = policy().live === 0 ? "Live: version 0, the bare base" : `Live: version ${policy().live}`;
    right.title.textContent = right.version === 0 ? "Version 0, the bare base" : `Version ${right.version}`;
    right.section.hidden = right.version === null;
    for (const talk of talks) {
      talk.messages = [];
      talk.session = `playground-${crypto.randomUUID()}`;
      talk.log.replaceChildren(piece("p", "soft none", "Nothing was said yet."));
    }
    copied();
  }

  // -- what is shown

  function piece(tag, name, text = "") {
    const element = document.createElement(tag);
    element.className = name;
    element.textContent = text;
    return element;
  }

  function add(talk, role) {
    const message = piece("div", `message ${role}`);
    const text = piece("div", "text");
    text.dir = "auto";
    message.append(piece("p", "role", role), text);
    talk.log.querySelector(".none")?.remove();
    talk.log.append(message);
    return {message, text};
  }

  function followed(log, change) {
    // somebody who scrolled up to read stays there
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    change();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  function withSystem(messages) {
    const system = field("system").value.trim();
    return system ? [{role: "system", content: system}, ...messages] : messages;
  }

  function numbers() {
    const found = {};
    for (const name of ["temperature", "max_tokens"]) {
      if (field(name).value !== "" && field(name).validity.valid) found[name] = field(name).valueAsNumber;
    }
    return found;
  }

  // -- copying: the key is always the reader's own to put in

  function copied() {
    for (const talk of talks) {
      if (talk.version === null) continue;
      const draft = field("say").value.trim();
      // with the draft it is the next request, without it the last one again
      const upTo = talk.messages.findLastIndex((message) => message.role === "user") + 1;
      const before = draft ? talk.messages : talk.messages.slice(0, upTo);
      const next = draft || (upTo === 0 ? "Hello!" : "");
      const messages = withSystem(next ? [...before, {role: "user", content: next}] : before);
      const name = field("policy").value;
      const model = talk.version === "live" ? name : `${name}@${talk.version}`;
      const body = {model, messages, ...numbers(), stream: true};
      const [curl, python] = talk.copies;
      curl.dataset.copy = [
        `curl -N ${choices.api_base}/chat/completions \\`,
        '  -H "Authorization: Bearer $ATTUNE_KEY" \\',
        '  -H "Content-Type: application/json" \\',
        `  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
      ].join("\n");
      // strings and numbers of JSON are Python's too
      const given = Object.entries(numbers()).map(([key, value]) => `    ${key}=${JSON.stringify(value)},\n`).join("");
      python.dataset.copy = [
        "import os",
        "",
        "from openai import OpenAI",
        "",
        `client = OpenAI(base_url=${JSON.stringify(choices.api_base)}, api_key=os.environ["ATTUNE_KEY"])`,
        "stream = client.chat.completions.create(",
        `    model=${JSON.stringify(model)},`,
        `    messages=${JSON.stringify(messages, null, 4).replaceAll("\n", "\n    ")},`,
        `${given}    stream=True,`,
        ")",
        "for chunk in stream:",
        '    print(chunk.choices[0].delta.content or "", end="", flush=True)',
        "",
      ].join("\n");
    }
  }

  // -- asking

  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const said = (name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
        const data = said("data");
        if (data === "[DONE]") yield ["done", null];
        else if (data) yield [said("event") || "message", JSON.parse(data)];
      }
    }
  }

  async function answer(talk, signal) {
    const shown = add(talk, "assistant");
    const facts = piece("p", "soft facts-line");
    const began = performance.now();
    let text = "", first = null, version = "", turn = "", usage = null, problem = "", whole = false;
    talk.log.setAttribute("aria-busy", "true"); // it is read out once it is whole
    try {
      const response = await fetch(form.dataset.ask, {
        method: "POST",
        signal,
        headers: {"Content-Type": "application/json", "X-CSRFToken": field("csrfmiddlewaretoken").value},
        body: JSON.stringify({
          policy: field("policy").value,
          version: talk.version,
          session_id: talk.session,
          memory: field("memory").checked,
          messages: withSystem(talk.messages),
          ...numbers(),
        }),
      });
      if (!response.ok || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        problem = response.redirected || response.status === 403 ? "You are signed out. Load the page again." : `The page was answered ${response.status}.`;
      } else {
        for await (const [name, value] of events(response)) {
          if (name === "refused") problem = value.message;
          else if (name === "turn") ({version, turn} = value);
          else if (name === "done") whole = true;
          else if (value.error) problem = value.error.message;
          else {
            const added = value.choices?.[0]?.delta?.content ?? "";
            if (added) {
              first ??= performance.now() - began;
              text += added;
              followed(talk.log, () => { shown.text.textContent = text; });
            }
            usage = value.usage ?? usage;
          }
        }
        if (!whole && !problem) problem = "The connection was lost before the reply ended.";
      }
    } catch (error) {
      problem = error.name === "AbortError" ? "Stopped." : "The connection was lost.";
    }
    followed(talk.log, () => {
      const parts = [];
      if (version !== "") parts.push(`version ${version}`);
      if (usage) parts.push(`${usage.completion_tokens} tokens`);
      if (first !== null) parts.push(`${(first / 1000).toFixed(2)} s to the first, ${((performance.now() - began) / 1000).toFixed(2)} s to the last`);
      facts.textContent = parts.join(", ");
      if (problem) shown.message.append(piece("p", problem === "Stopped." ? "soft" : "problem", problem));
      if (facts.textContent) shown.message.append(facts);
      if (turn) {
        const link = piece("a", "", "its session");
        link.href = `${form.dataset.turns}${encodeURIComponent(turn)}`;
        facts.append(facts.textContent ? ", " : "", link);
      }
    });
    talk.log.setAttribute("aria-busy", "false");
    if (text) talk.messages.push({role: "assistant", content: text});
    else talk.messages.pop(); // what got no reply is not said again with the next message
    return problem;
  }

  async function send() {
    const said = field("say").value.trim();
    if (!said || running) return;
    running = new AbortController();
    busy(true);
    field("say").value = "";
    const asking = talks.filter((talk) => talk.version !== null);
    for (const talk of asking) {
      talk.messages.push({role: "user", content: said});
      add(talk, "user").text.textContent = said;
      talk.log.scrollTop = talk.log.scrollHeight;
    }
    status.textContent = "Asked.";
    const {signal} = running;
    const problems = await Promise.all(asking.map((talk) => answer(talk, signal)));
    if (running?.signal === signal) {
      running = null;
      busy(false);
    }
    status.textContent = problems.find(Boolean) || "Answered.";
    copied();
  }

  function stop() {
    if (!running) return;
    running.abort();
    running = null;
    busy(false);
  }

  function busy(is) {
    field("send").disabled = is;
    field("stop").disabled = !is;
    form.classList.toggle("busy", is);
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  field("say").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
  field("stop").addEventListener("click", () => { stop(); field("say").focus(); });
  field("anew").addEventListener("click", () => { anew(); field("say").focus(); });
  field("policy").addEventListener("change", () => { choices.beside = ""; offer(); anew(); });
  field("beside").addEventListener("change", anew);
  form.addEventListener("input", copied);
  window.addEventListener("pagehide", stop);

  offer();
  anew();
})();
