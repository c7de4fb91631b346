// The page: its parts, its keys, and its address, whose fragment says which terminal is shown (#pty-…).
import {Host} from "./ahp.js";
import {List} from "./list.js";
import {Push} from "./push.js";
import {clean, place} from "./text.js";
import {View} from "./view.js";

const $ = id => document.getElementById(id);
const host = new Host();
const list = new List($("list"), $("filter"));
const view = new View(host);

function show() {
  const id = location.hash.slice(1), t = list.find(id);
  list.choose(id);
  document.body.dataset.pane = id ? "view" : "list";
  $("view").hidden = !t && !view.t;
  $("empty").hidden = !$("view").hidden;
  if (!t && id && view.t?.id === id && view.parked) view.gone();
  if (t) { view.show(t); requestAnimationFrame(() => view.fit()); }
  else if (!id || view.t?.id !== id) { view.leave(); $("view").hidden = true; $("empty").hidden = false; document.title = "tether-host"; }
  start(id && !t);
}

// start fills the part that is visible while no terminal is shown. It offers the newest terminals, or says how to share one.
function start(lost) {
  const offered = list.newest(6), none = list.size === 0;
  $("welcome").textContent = lost ? "That terminal is not there any more" : none ? "No terminals yet" : "Choose a terminal";
  $("hint").textContent = none ? "On a machine, pair with this host and share a terminal:" : offered.length ? "The newest running terminals:" : "No terminal is running now. The list has those that have exited.";
  $("how").hidden = !none;
  $("how").textContent = "tether pair " + location.origin.replace(/^http/, "ws") + "\ntether run -- npm run dev";
  const text = offered.map(t => t.id + t.machine + t.name + t.running + t.cwd).join();
  if ($("offers").dataset.of === text) return;
  $("offers").dataset.of = text;
  $("offers").replaceChildren(...offered.map(t => {
    const a = Object.assign(document.createElement("a"), {href: "#" + t.id});
    a.append(Object.assign(document.createElement("b"), {textContent: clean(t.machine) + "/" + clean(t.name)}),
      Object.assign(document.createElement("span"), {textContent: t.running ? "$ " + clean(t.running) : place(t.cwd)}));
    return a;
  }));
}
addEventListener("hashchange", show);
list.addEventListener("change", show);

let countdown;
host.addEventListener("link", ({detail: d}) => {
  const l = $("link");
  clearInterval(countdown);
  l.dataset.state = d.state;
  if (d.state === "up") l.textContent = "live";
  else if (d.state === "down") {
    l.textContent = "logged out";
    view.note("Session expired. Log in again to continue.", "bad");
    if (!$("again")) $("notice").append(" ", Object.assign(document.createElement("a"), {id: "again", href: "/", textContent: "Log in"}));
  } else {
    const until = performance.now() + d.wait;
    const tick = () => { l.textContent = "reconnecting in " + Math.max(0, Math.ceil((until - performance.now()) / 1000)) + " s"; };
    tick();
    countdown = setInterval(tick, 500);
    if (view.t) view.note("Connection to the host lost. What you see may be old.", "bad");
  }
  if (d.state === "up" && !d.again) view.note("");
});

$("tab-screen").onclick = () => view.choose("screen");
$("tab-text").onclick = () => view.choose("text");
$("tab-commands").onclick = () => view.tab("commands");
$("tab-problems").onclick = () => view.tab("problems");
$("tab-runs").onclick = $("verdict").onclick = () => view.tab("runs");
$("back").onclick = () => { location.hash = ""; };
$("copy").onclick = () => view.copy();
$("follow").onclick = () => view.follow();
$("find").oninput = () => view.find();
$("next").onclick = () => view.find();
$("previous").onclick = () => view.find(true);
$("find").onkeydown = e => { if (e.key === "Enter") { e.preventDefault(); view.find(e.shiftKey); } };
$("keys").onclick = () => $("help").showModal();
$("go").onclick = () => $("ask").close();

const wish = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const chosen = localStorage.getItem("theme"), dark = chosen ? chosen === "dark" : wish.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  view.theme(dark);
}
$("theme").onclick = () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
};
wish.addEventListener("change", theme);
theme();

const keys = {
  "/": () => $("find").focus(), f: () => $("filter").focus(), s: () => view.choose("screen"), t: () => view.choose("text"), c: () => view.tab("commands"), p: () => view.tab("problems"), r: () => view.tab("runs"), o: () => view.blocks.fold(),
  y: () => view.copy(), "?": () => $("help").showModal(), Escape: () => { location.hash = ""; list.tabbed?.focus(); },
  PageUp: () => view.scroll("PageUp"), PageDown: () => view.scroll("PageDown"), Home: () => view.scroll("Home"), End: () => view.scroll("End"),
  ArrowDown: () => list.shown()[0]?.focus(),
};
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const field = e.target.matches?.("input, textarea, select") && !e.target.classList.contains("xterm-helper-textarea");
  if (field) {
    if (e.key === "Escape") { e.target.value = ""; e.target.dispatchEvent(new Event("input")); e.target.blur(); }
    return;
  }
  if (e.target.matches?.("pre, [role=tabpanel]") && /^(Page|Home|End|Arrow)/.test(e.key)) return; // the browser scrolls it
  const act = keys[e.key];
  if (act) { e.preventDefault(); act(); }
});

// For tests: the page's state, read only.
Object.defineProperty(globalThis, "tetherPage", {value: Object.freeze({
  screen: () => { const b = view.term.buffer.active, out = []; for (let i = 0; i < b.length; i++) out.push(b.getLine(i).translateToString(true)); return out.join("\n"); },
  waiting: () => view.waiting,
})});
show();
new Push();
