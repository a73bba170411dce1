// The page from its start: tabs, and the three views.
import { get, say, told } from "./api.js";
import { startCorrect } from "./correct.js";
import { startLooking, startPictures } from "./pictures.js";
import { changed, refreshTypes, state } from "./state.js";
import { startTypes } from "./types.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function open(tab, focus = false) {
  for (const one of tabs) {
    const is = one === tab;
    one.setAttribute("aria-selected", String(is));
    one.tabIndex = is ? 0 : -1;
    document.getElementById(one.getAttribute("aria-controls")).hidden = !is;
  }
  if (focus) tab.focus();
  changed();
}

for (const [place, tab] of tabs.entries()) {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step !== undefined) open(tabs[(place + step + tabs.length) % tabs.length], true);
  });
}

told(async () => {
  say("Opening…");
  state.session = await get("/api/session");
  document.getElementById("model").textContent = state.session.model;
  document.getElementById("names").textContent = `What is said of types is kept in ${state.session.names}`;
  document.title = `tusk: ${state.session.model}`;
  startPictures();
  startTypes();
  startCorrect();
  await refreshTypes();
  say("");
  await startLooking();
  document.body.dataset.ready = "yes";
})();
