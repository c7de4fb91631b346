// A client of the host that only watches: handshake, subscriptions, reconnection. It sends nothing else.

const versions = ["1.0.0", "0.9.0"];
const quiet = 20000, patience = 10000, longest = 15000; // ms

export class Host extends EventTarget {
  // path is where the host serves the protocol. The status of alive says whether the login is still valid.
  constructor(path = "/ahp", alive = "/events") {
    super();
    this.path = path;
    this.alive = alive;
    this.id = "web-" + Array.from(crypto.getRandomValues(new Uint8Array(12)), b => b.toString(16).padStart(2, "0")).join("");
    this.subs = new Map(); // URI -> {load(state, how), apply(action)}
    this.calls = new Map();
    this.seq = 0;
    this.last = 0; // serverSeq
    this.tries = 0;
    this.known = false; // the host knows this client, so that it can reconnect
    this.left = -Infinity; // when the browser last began to leave the page, as a logout does: it may still stay
    addEventListener("beforeunload", () => { this.left = performance.now(); });
    this.connect();
  }

  // tell announces the state of the link: up, wait (with the ms until the next try) or down for good.
  tell(state, detail) { this.dispatchEvent(new CustomEvent("link", {detail: {state, ...detail}})); }

  connect() {
    clearTimeout(this.timer);
    const socket = this.socket = new WebSocket(location.origin.replace(/^http/, "ws") + this.path);
    socket.onopen = () => this.handshake(socket);
    socket.onmessage = e => { this.heard = performance.now(); this.receive(JSON.parse(e.data)); };
    socket.onclose = e => { if (this.socket === socket) this.lost(e); };
  }

  async handshake(socket) {
    this.heard = performance.now();
    const uris = [...this.subs.keys()];
    // A channel that waits for its first state cannot be resumed: without a state, the missed actions are useless.
    const waiting = [...this.subs].filter(([, s]) => s.from === Infinity);
    try {
      if (this.known) {
        try {
          const resumable = uris.filter(uri => this.subs.get(uri)?.from !== Infinity);
          this.resumed(await this.call("reconnect", {channel: "ahp-root://", clientId: this.id, lastSeenServerSeq: this.last,
            subscriptions: resumable}), resumable);
          this.up(true);
          for (const [uri, s] of waiting) if (this.subs.get(uri) === s) this.subscribe(uri, s, "late");
          return;
        } catch (e) {
          if (this.socket !== socket) return;
        }
      }
      const r = await this.call("initialize", {channel: "ahp-root://", protocolVersions: versions, clientId: this.id,
        clientInfo: {name: "tether-host web page"}, initialSubscriptions: uris});
      const again = this.known;
      this.known = true;
      this.last = r.serverSeq;
      const there = new Set();
      for (const s of r.snapshots) { there.add(s.resource); this.snapshot(s, again ? "anew" : "first"); }
      for (const uri of uris) if (!there.has(uri)) this.subs.get(uri)?.gone();
      this.up(again);
    } catch (e) {
      socket.close();
    }
  }

  up(again) {
    this.tries = 0;
    this.tell("up", {again});
    clearInterval(this.beat);
    this.beat = setInterval(() => this.check(), 5000);
  }

  // check closes a connection on which nothing has arrived for too long, even after a ping.
  check() {
    const silent = performance.now() - this.heard;
    if (silent > quiet + patience) this.socket.close();
    else if (silent > quiet) this.call("ping", {channel: "ahp-root://"}).catch(() => {});
    if (silent > quiet + patience + 5000) this.lost({code: 1006});
  }

  lost(e) {
    clearInterval(this.beat);
    for (const c of this.calls.values()) c.reject(new Error("connection lost"));
    this.calls.clear();
    this.socket.onclose = this.socket.onmessage = null;
    const wait = Math.min(longest, 400 * 2 ** this.tries++) * (0.5 + Math.random() / 2);
    this.tell("wait", {wait, code: e.code, reason: e.reason});
    if (performance.now() - this.left > patience) fetch(this.alive, {method: "HEAD"}).then(r => {
      if (r.status === 401 || r.status === 403) { clearTimeout(this.timer); this.tell("down"); }
    }, () => {});
    this.timer = setTimeout(() => this.connect(), wait);
  }

  call(method, params) {
    const id = ++this.seq;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) return reject(new Error("not connected"));
      this.calls.set(id, {resolve, reject});
      this.socket.send(JSON.stringify({jsonrpc: "2.0", id, method, params}));
    });
  }

  receive(m) {
    if (m.method === "action") return this.envelope(m.params, "live");
    const c = this.calls.get(m.id);
    if (!c) return;
    this.calls.delete(m.id);
    if (m.error) c.reject(Object.assign(new Error(m.error.message), {code: m.error.code}));
    else c.resolve(m.result);
  }

  envelope(e) {
    this.last = Math.max(this.last, e.serverSeq);
    if (e.rejectionReason) return;
    const s = this.subs.get(e.channel);
    if (s && e.serverSeq > (s.from ?? Infinity)) s.apply(e.action);
  }

  // resumed applies the answer to a reconnect. Snapshots leave out the terminals that are gone, a replay names them.
  resumed(r, asked) {
    const there = new Set();
    for (const s of r.snapshots ?? []) { there.add(s.resource); this.last = Math.max(this.last, s.fromSeq); this.snapshot(s, "resync"); }
    for (const e of r.actions ?? []) this.envelope(e);
    for (const uri of r.type === "snapshot" ? asked.filter(uri => !there.has(uri)) : r.missing ?? []) this.subs.get(uri)?.gone();
    if (r.type === "replay") for (const s of this.subs.values()) s.replayed?.(r.actions.length);
  }

  snapshot(s, how) {
    const sub = this.subs.get(s.resource);
    if (!sub) return;
    sub.from = s.fromSeq;
    sub.load(s.state, how);
  }

  async subscribe(uri, sub, how = "first") {
    this.subs.set(uri, sub);
    sub.from = Infinity;
    try {
      const r = await this.call("subscribe", {channel: uri});
      if (this.subs.get(uri) === sub) { this.last = Math.max(this.last, r.snapshot.fromSeq); this.snapshot(r.snapshot, how); }
    } catch (e) {
      if (e.code !== undefined && this.subs.get(uri) === sub) sub.gone();
    }
  }

  unsubscribe(uri) {
    this.subs.delete(uri);
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({jsonrpc: "2.0", method: "unsubscribe", params: {channel: uri}}));
  }
}
