// What every page of the dashboard does in the browser: times in the reader's zone, copying, the menu on small screens.
(() => {
  "use strict";

  const zone = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"});

  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const when = new Date(time.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      time.title = time.textContent;
      time.textContent = zone.format(when);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    const menu = document.querySelector(".menu");
    const narrow = window.matchMedia("(max-width: 60rem)");
    const fit = () => { if (menu) menu.open = !narrow.matches; };
    fit();
    narrow.addEventListener("change", fit);
  });
  document.addEventListener("htmx:after:swap", (event) => localTimes(event.target));

  // Parts of a page that are followed, by a stream or by asking again. What cannot be reached is said once for all of them,
  // and no more when it is back; a stream that never began is asked for again here (the library does it for others).

  const LATER = 1500; // a stream that ends and begins anew at once was not lost
  const AGAIN = 3000;
  const lost = new Map();
  const isStream = (part) => part.matches("[hx-sse\\:connect]");

  function say() {
    for (const part of lost.keys()) if (!part.isConnected) lost.delete(part);
    const words = [...new Set(lost.values())].join(" "), place = document.getElementById("lost");
    if (place.textContent !== words) place.textContent = words;
  }

  function lose(part, status = 0) {
    if (!part.matches?.("[hx-sse\\:connect], [hx-trigger^='every']")) return false;
    lost.set(part, status === 401 ? "You are signed out: load the page anew."
      : status >= 400 && status < 500 ? "A part of the page is gone: load it anew."
      : "The connection is lost. It is tried again.");
    setTimeout(say, LATER);
    if (isStream(part) && !part._htmx?.sse && status !== 401) {
      setTimeout(() => part.dispatchEvent(new Event("again")), AGAIN * (0.5 + Math.random()));
    }
    return true;
  }

  function found(part) {
    if (lost.delete(part)) say();
  }

  document.addEventListener("htmx:error", (event) => lose(event.target));
  document.addEventListener("htmx:response:error", (event) => {
    const {ctx} = event.detail;
    if (lose(event.target, ctx.response.status)) ctx.swap = "none"; // what is shown stays
  });
  document.addEventListener("htmx:sse:error", (event) => lose(event.target, event.detail.status));
  document.addEventListener("htmx:sse:after:connection", (event) => found(event.target));
  document.addEventListener("htmx:after:request", (event) => {
    if (event.detail.ctx.response.status < 400) found(event.target);
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
    await navigator.clipboard.writeText(from ? from.textContent : button.dataset.copy);
    if (button.textContent === "Copied") return;
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 2000);
  });
})();
