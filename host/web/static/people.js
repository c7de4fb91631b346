// The machines, people, tokens, grants, links and logins at the host: a person's own and, for administrators, everybody's. The page can end
// each of them, and can grant nothing.
import {clean} from "./text.js";

const $ = id => document.getElementById(id);

// kinds are the tables: their titles, their columns, what happens when an entry is ended, and what ends it without this page.
const kinds = {
  machine: {title: "Machines", columns: ["Name", "Owner", "State", "Terminals", "Since"], ends: "It can lend no terminals until it is paired again.", command: e => "tether-host token revoke " + e.name},
  person: {title: "People", columns: ["Name", "Groups", "Since"], ends: "They are logged out, and their machines and agents lose all access. The name cannot be used again.", command: e => "tether-host people rm " + e.name},
  agent: {title: "Agents and tokens", columns: ["Name", "Owner", "Role", "Since", "Until"], ends: "The token is revoked, and its connections end.", command: e => "tether-host token revoke " + e.id},
  grant: {title: "Grants", columns: ["Machine", "To", "Owner", "Since"], ends: "They cannot watch the machine's terminals by this grant any more.", command: e => "tether-host grants end " + e.name + " " + e.detail},
  share: {title: "Shared links", columns: ["Terminal", "Owner", "State", "Since", "Until"], ends: "The link stops working, and guests who watch by it are sent nothing more.", command: () => "tether unshare, at its machine"},
  session: {title: "Logins", columns: ["Name", "How", "Since", "Until"], ends: "This login ends.", command: () => "Log out, in that browser, or tether logout"},
  terminal: {title: "Terminals", columns: ["Name", "Owner", "Size", "Since"]},
};

const cells = {
  Name: e => e.name, Machine: e => e.name, Terminal: e => e.name, Owner: e => e.owner || "administrator", Groups: e => e.detail, Role: e => e.detail, To: e => e.detail, How: e => e.detail,
  State: e => e.kind === "machine" ? e.online ? "connected" : "offline" : e.detail, Terminals: e => String(e.terminals ?? 0), Size: e => Math.ceil((e.size ?? 0) / 1024) + " KiB",
  Since: e => when(e.since), Until: e => e.until ? when(e.until) : "",
};

function when(time) { return time ? new Date(time).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"}) : ""; }

const unreachable = "The host cannot be reached. Try again later.";

let state = null, drawn = [];

async function load() {
  const answer = await fetch("/people/entries", {headers: {Accept: "application/json"}}).catch(() => null);
  if (!answer) {
    note(unreachable);
    if (!state) $("who").textContent = "";
    return;
  }
  if ($("notice").textContent === unreachable) note("");
  if (answer.status === 401) { location.href = "/"; return; }
  if (!answer.ok) { note(await answer.text()); return; }
  state = await answer.json();
  $("who").textContent = (state.me ? "You are " + clean(state.me) : "You use the host's own token") + (state.admin ? ", an administrator: this is everybody's." : ". This is yours.");
  draw();
}

// draw makes all tables again, before it puts them into the page at once.
function draw() {
  const focused = document.activeElement?.dataset?.key;
  drawn = [];
  const parts = [];
  for (const [kind, k] of Object.entries(kinds)) {
    const all = state.entries.filter(e => e.kind === kind).sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    if (!all.length) continue;
    const section = document.createElement("section"), table = document.createElement("table");
    const head = Object.assign(document.createElement("h2"), {textContent: k.title + " (" + all.length + ")"});
    const top = table.createTHead().insertRow();
    for (const name of [...k.columns, ...k.ends ? [""] : []]) top.append(Object.assign(document.createElement("th"), {textContent: name, scope: "col"}));
    const body = table.createTBody();
    for (const e of all) body.append(row(e, k));
    section.append(head, table);
    parts.push(section);
  }
  $("tables").replaceChildren(...parts);
  filter();
  if (focused) [...$("tables").querySelectorAll("button")].find(b => b.dataset.key === focused)?.focus();
}

function row(e, k) {
  const tr = document.createElement("tr"), words = [];
  for (const name of k.columns) {
    const td = tr.insertCell(), text = clean(cells[name](e) ?? "");
    td.dataset.label = name;
    td.textContent = text;
    words.push(text);
  }
  if (k.ends) {
    const button = Object.assign(document.createElement("button"), {type: "button", textContent: "End", disabled: !state.secure});
    button.dataset.key = e.kind + " " + e.id;
    button.setAttribute("aria-label", "End " + e.kind + " " + words[0]);
    if (!state.secure) button.title = "Entries can be ended only over https";
    else if (state.unproven) button.title = clean(k.command(e));
    button.onclick = () => ask(e, words[0], k);
    tr.insertCell().append(button);
  }
  drawn.push([tr, words.join(" ").toLowerCase()]);
  return tr;
}

// filter hides the rows that do not match. It reads no layout, so that it is quick with many rows.
function filter() {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const [tr, text] of drawn) tr.hidden = !words.every(w => text.includes(w));
  for (const section of $("tables").children) section.hidden = !section.querySelector("tbody tr:not([hidden])");
}

function ask(e, name, k) {
  if (state.unproven) { instead(clean(k.command(e))); return; }
  if (!state.fresh) { again(); return; }
  $("question").textContent = "End " + e.kind + " " + name + "?";
  $("meaning").textContent = k.ends;
  $("sure").returnValue = "no";
  $("sure").onclose = () => { if ($("sure").returnValue === "yes") end(e); };
  $("sure").showModal();
}

async function end(e) {
  const answer = await fetch("/people/end", {method: "POST", headers: {"Content-Type": "application/json", "X-Tether-Csrf": state.csrf}, body: JSON.stringify({kind: e.kind, id: e.id})}).catch(() => null);
  if (!answer) { note(unreachable); return; }
  if (answer.ok) { note(""); await load(); return; }
  const why = (await answer.text()).trim();
  await load();
  if (state && !state.fresh && !state.unproven) again();
  else note(why);
}

// instead tells what to do where no login can be shown to be new.
function instead(command) {
  note("Nothing can be ended here: your identity provider does not say when you have logged in there. Instead: ");
  $("notice").append(Object.assign(document.createElement("code"), {textContent: command}));
}

function again() {
  note("You have not shown within 15 minutes who you are. ");
  $("notice").append(Object.assign(document.createElement("a"), {href: state.again, textContent: state.again === "/" ? "Log out and in again to end anything." : "Log in again to end anything."}));
}

function note(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

$("filter").addEventListener("input", filter);
addEventListener("keydown", e => {
  if (e.key === "/" && !e.target.matches?.("input") && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); $("filter").focus(); }
  if (e.key === "Escape" && e.target === $("filter")) { $("filter").value = ""; filter(); }
});
addEventListener("visibilitychange", () => { if (!document.hidden) load(); });
load();
