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
