// What this browser notifies its person of, also while the page is closed. It is offered where the host and the browser can do it.
const $ = id => document.getElementById(id);
const when = {
  "terminal.awaiting_input": "a program waits for input", "terminal.exited": "a program fails", "terminal.command_finished": "a command of a shell fails",
  "problems.changed": "there are new problems", "terminal.ready": "it is ready, or fails to be",
};
const nothing = {all: false, terminals: [], kinds: []};

export class Push {
  constructor() {
    this.choice = nothing;
    if (!("serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis)) return;
    navigator.serviceWorker.addEventListener("message", e => { if (String(e.data?.open).startsWith("#")) location.hash = e.data.open; });
    this.begin().catch(() => {}); // a host that does not answer offers nothing
  }

  async begin() {
    Object.assign(this, await (await fetch("/push")).json()); // key, csrf, kinds
    if (!this.key) return;
    const sub = await this.subscription();
    if (sub) {
      this.choice = await this.ask(sub);
      if (none(this.choice)) await sub.unsubscribe(); // somebody else's, or its time is over
    }
    $("notify").hidden = $("bell").hidden = false;
    $("notify").onclick = () => this.open();
    $("bell").onclick = () => this.toggle(location.hash.slice(1));
    $("notice-save").onclick = () => this.save();
    addEventListener("hashchange", () => this.mark());
    this.mark();
  }

  async subscription() { return (await navigator.serviceWorker.getRegistration("/"))?.pushManager.getSubscription(); }

  // ask returns what the host notifies this browser of, after it has stored a choice, if there is one.
  async ask(sub, choice) {
    const {endpoint, keys} = sub.toJSON();
    const r = await fetch("/push", {method: "POST", headers: {"Content-Type": "application/json", "X-Tether-Csrf": this.csrf}, body: JSON.stringify({subscription: {endpoint, keys}, choice})});
    if (!r.ok) throw new Error((await r.text()).trim());
    return {...nothing, ...Object.fromEntries(Object.entries(await r.json()).filter(([, v]) => v))};
  }

  // set changes of what this browser notifies. The first time, the browser asks its person.
  async set(choice) {
    let sub = await this.subscription();
    if (none(choice)) {
      if (sub) { await this.ask(sub, nothing); await sub.unsubscribe(); }
    } else {
      if (await Notification.requestPermission() !== "granted") throw new Error("The browser does not let this page notify you; its settings can change that.");
      await navigator.serviceWorker.register("/sw.js");
      const {pushManager} = await navigator.serviceWorker.ready;
      sub ??= await pushManager.subscribe({userVisibleOnly: true, applicationServerKey: this.key}).catch(async e => {
        if (e.name !== "InvalidStateError") throw e; // the host had another key
        await (await pushManager.getSubscription())?.unsubscribe();
        return pushManager.subscribe({userVisibleOnly: true, applicationServerKey: this.key});
      });
      choice = await this.ask(sub, choice);
    }
    this.choice = choice;
    this.mark();
  }

  mark() {
    const of = this.choice.all || this.choice.terminals.includes(location.hash.slice(1));
    $("bell").setAttribute("aria-pressed", String(of && !none(this.choice)));
  }

  open(why = "") {
    const {all, terminals, kinds} = this.choice, n = terminals.length;
    $("some").textContent = n === 1 ? "one terminal" : n + " terminals";
    $("some").parentElement.hidden = n === 0;
    for (const e of document.querySelectorAll("#notices [name=of]")) e.checked = e.value === (none(this.choice) ? "none" : all ? "all" : "some");
    $("notice-kinds").replaceChildren($("notice-kinds").firstElementChild, ...this.kinds.map(kind => {
      const box = Object.assign(document.createElement("input"), {type: "checkbox", value: kind, checked: none(this.choice) || kinds.includes(kind)});
      const label = document.createElement("label");
      label.append(box, " ", when[kind] ?? kind);
      return label;
    }));
    $("notice-why").textContent = why;
    if (!$("notices").open) $("notices").showModal();
  }

  async save() {
    const of = document.querySelector("#notices [name=of]:checked")?.value ?? "none";
    const kinds = [...document.querySelectorAll("#notice-kinds input:checked")].map(e => e.value);
    if (of !== "none" && !kinds.length) { $("notice-why").textContent = "Choose when, or nothing."; return; }
    await this.attempt(of === "none" ? nothing : {all: of === "all", terminals: this.choice.terminals, kinds});
  }

  // toggle switches notifications of one terminal.
  async toggle(id) {
    if (this.choice.all) { this.open(); return; }
    const {terminals, kinds} = this.choice;
    const now = terminals.includes(id) ? terminals.filter(t => t !== id) : [...terminals, id];
    await this.attempt({all: false, terminals: now, kinds: kinds.length ? kinds : this.kinds});
  }

  async attempt(choice) {
    $("notice-save").disabled = $("bell").disabled = true;
    try {
      await this.set(choice);
      $("notices").close();
    } catch (e) {
      this.open();
      $("notice-why").textContent = e.message;
    } finally {
      $("notice-save").disabled = $("bell").disabled = false;
    }
  }
}

const none = c => !c.kinds.length || !c.all && !c.terminals.length;
