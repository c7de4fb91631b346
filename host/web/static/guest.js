// The page of a guest: one terminal, by a link whose secret is in its fragment (#ID.SECRET). The guest opens it with a click, so that
// programs that only look at links do not use it up. Once the host knows the browser, the secret is removed from the address.
import {Host} from "./ahp.js";
import {openPreview} from "./preview.js";
import {View} from "./view.js";

const $ = id => document.getElementById(id);
const [id, secret] = location.hash.slice(1).split(".");
let view;

function wrong(text) {
  $("wrong").textContent = text;
  $("wrong").hidden = false;
}

// watch shows the terminal that the host has opened for this browser.
function watch(opened) {
  history.replaceState(null, "", location.pathname + "#" + id);
  globalThis.localStorage?.setItem("opened", id);
  const host = new Host("/s/ahp", "/s/state");
  view = new View(host, () => "/s/terminal");
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => { document.documentElement.dataset.theme = wish.matches ? "dark" : "light"; view.theme(wish.matches); };
  wish.addEventListener("change", theme);
  theme();
  host.addEventListener("link", ({detail: d}) => {
    $("link").dataset.state = d.state;
    $("link").textContent = d.state === "up" ? "live" : d.state === "down" ? "ended" : "reconnecting…";
    if (d.state === "down") view.note("This link was ended or has expired. You see the terminal's last state.", "bad");
  });
  $("empty").hidden = true;
  $("view").hidden = false;
  view.show(opened.row);
  requestAnimationFrame(() => view.fit());
  setInterval(() => { if (view.parked || view.over || view.state?.lifecycle?.status === "exited") follow(); }, 5000);
  globalThis.tetherPage = Object.freeze({
    screen: () => { const b = view.term.buffer.active, out = []; for (let i = 0; i < b.length; i++) out.push(b.getLine(i).translateToString(true)); return out.join("\n"); },
  });
}

// follow asks for the present state of a terminal that AHP does not know any more: its machine may be away, or back.
async function follow() {
  const state = await fetch("/s/state").catch(() => null), row = state?.ok && (await state.json()).row;
  if (row) view.show(row);
}

// preview leads to the one port that the link is for.
async function preview() {
  history.replaceState(null, "", location.pathname + "#" + id);
  globalThis.localStorage?.setItem("opened", id);
  const why = await openPreview("/s/preview", {}, "_self");
  if (why) wrong(why);
}

function take(opened) {
  if (opened.port) preview();
  else if (opened.row) watch(opened);
  else wrong("The terminal's machine is away now, or does not share the terminal any more. Try again later.");
}

async function open() {
  $("wrong").hidden = true;
  const answer = await fetch("/s/open", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({id, secret: secret ?? ""})}).catch(() => null);
  if (!answer) wrong("The host cannot be reached. Try again later.");
  else if (answer.ok) take(await answer.json());
  else wrong((await answer.text()).trim());
}

$("open").onclick = open;
$("tab-screen").onclick = () => view.choose("screen");
$("tab-text").onclick = () => view.choose("text");
$("tab-commands").onclick = () => view.tab("commands");
$("copy").onclick = () => view.copy();
$("follow").onclick = () => view.follow();
$("find").oninput = () => view.find();
$("next").onclick = () => view.find();
$("previous").onclick = () => view.find(true);
$("find").onkeydown = e => { if (e.key === "Enter") { e.preventDefault(); view.find(e.shiftKey); } };
$("go").onclick = () => $("ask").close();

// A browser that has opened the link before continues without a click. Another one does not ask: the refusal would be an error in its console.
const known = !secret || globalThis.localStorage?.getItem("opened") === id;
const state = known && await fetch("/s/state").catch(() => null);
if (state?.ok) {
  const opened = await state.json();
  if (opened.share === id) take(opened);
}
