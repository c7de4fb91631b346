package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// script runs a program in Node, without a browser, and returns its output. The program
// imports the page's files from ./. In place of xterm.js there is a Terminal that draws
// text some time after write, as xterm.js does. Its drawn is that text.
func script(t *testing.T, program string) string {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	files, err := filepath.Glob("static/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	texts := map[string]string{"main.mjs": program, "package.json": `{"type": "module"}`,
		"vendor/addon-search.mjs": `export class SearchAddon { onDidChangeResults() {} }`,
		"vendor/xterm.mjs": `export class Terminal {
  drawn = ""; options = {}; textarea = {setAttribute() {}}; buffer = {active: {viewportY: 0, baseY: 0}};
  loadAddon() {} open() {} attachCustomKeyEventHandler() {} onScroll() {} onRender() {} resize() {}
  reset() { this.drawn = ""; }
  write(text, done) { setTimeout(() => { this.drawn += text; done?.(); }); }
}`}
	for _, file := range files {
		module := must.Get(os.ReadFile(file))(t)
		texts[filepath.Base(file)] = string(module)
	}
	for name, text := range texts {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	out, err := exec.CommandContext(t.Context(), node, filepath.Join(dir, "main.mjs")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// fakeHost begins a program that connects a Host of ahp.js. The program's function
// answer(socket, message) is the other end.
const fakeHost = `
globalThis.location = {origin: "http://localhost"};
globalThis.addEventListener = () => {};
globalThis.CustomEvent ??= class extends Event { constructor(type, o) { super(type); this.detail = o.detail; } };
globalThis.fetch = () => new Promise(() => {});
const sockets = [];
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() { this.readyState = 0; sockets.push(this); setTimeout(() => { this.readyState = 1; this.onopen(); }); }
  close() { this.readyState = 3; setTimeout(() => this.onclose?.({code: 1006})); }
  send(text) { setTimeout(() => answer(this, JSON.parse(text))); }
  say(m) { this.onmessage?.({data: JSON.stringify(m)}); }
};
const {Host} = await import("./ahp.js");
const until = async ok => { while (!ok()) await new Promise(done => setTimeout(done, 5)); };
const host = new Host();
const log = [];
const sub = name => ({load: (s, how) => log.push(name + " " + s.title + " " + how), apply: a => log.push(name + " " + a.type), gone: () => log.push(name + " gone"), replayed: () => {}});
`

// A terminal that was chosen while the connection was lost, or before its first state
// arrived, is requested on the next connection: without a state, replayed actions are
// useless.
func TestATerminalChosenWithoutAConnection(t *testing.T) {
	got := script(t, fakeHost+`
function answer(s, m) {
  const reply = result => s.say({jsonrpc: "2.0", id: m.id, result});
  const state = uri => ({resource: uri, fromSeq: 5, state: {title: uri}});
  if (m.method === "initialize") reply({serverSeq: 5, snapshots: []});
  if (m.method === "reconnect") { log.push("reconnect " + m.params.subscriptions); reply({type: "replay", actions: [], missing: []}); }
  if (m.method === "subscribe") reply({snapshot: state(m.params.channel)});
}
await until(() => host.known);
host.subscribe("x:/had", sub("had"));
await until(() => log.length === 1);
sockets[0].close();
await until(() => sockets[0].onclose === null);
host.subscribe("x:/chosen", sub("chosen"));
await until(() => log.some(l => l.startsWith("reconnect")));
setTimeout(() => { console.log(log.join("\n")); process.exit(); }, 20000); // gives up if it never comes
await until(() => log.some(l => l.includes("late")));
for (const uri of ["x:/had", "x:/chosen"]) sockets[1].say({jsonrpc: "2.0", method: "action", params: {channel: uri, serverSeq: 9, action: {type: "new"}}});
console.log(log.join("\n"));
process.exit();
`)
	want := strings.Join([]string{"had x:/had first", "reconnect x:/had", "chosen x:/chosen late", "had new", "chosen new"}, "\n")
	if got != want {
		t.Errorf("the page does\n%s\nwant\n%s", got, want)
	}
}

// A host that answers a reconnect with snapshots leaves out the terminals that are gone:
// the page says so.
func TestATerminalThatIsGoneAfterAReconnect(t *testing.T) {
	got := script(t, fakeHost+`
function answer(s, m) {
  const reply = result => s.say({jsonrpc: "2.0", id: m.id, result});
  const state = (uri, fromSeq) => ({resource: uri, fromSeq, state: {title: uri}});
  if (m.method === "initialize") reply({serverSeq: 5, snapshots: []});
  if (m.method === "reconnect") reply({type: "snapshot", snapshots: [state("x:/there", 9)]});
  if (m.method === "subscribe") reply({snapshot: state(m.params.channel, 5)});
}
await until(() => host.known);
host.subscribe("x:/there", sub("there"));
host.subscribe("x:/gone", sub("gone"));
await until(() => log.length === 2);
sockets[0].close();
let links = 0;
host.addEventListener("link", () => links++);
await until(() => links === 2);
console.log(log.join("\n"));
process.exit();
`)
	want := strings.Join([]string{"there x:/there first", "gone x:/gone first", "there x:/there resync", "gone gone"}, "\n")
	if got != want {
		t.Errorf("the page does\n%s\nwant\n%s", got, want)
	}
}

// Output with wide gaps makes few elements: a browser takes seconds for a million.
func TestGapsAreFewElements(t *testing.T) {
	got := script(t, `
let made = 0;
globalThis.document = {
  createDocumentFragment: () => ({append() { made++; }}), createTextNode: text => text, createElement: () => ({style: {}}),
};
const {draw, lines} = await import("./text.js");
draw({replaceChildren() {}}, lines("\x1b[1000Cx\n".repeat(100), 2000));
console.log(made < 1000 ? "few" : made);
`)
	if got != "few" {
		t.Errorf("100 lines with a gap are %s elements", got)
	}
}

// Output that waits to be drawn belongs to the state before. It does not appear on the
// screen of the terminal that is chosen next, or after a clear.
func TestOutputIsDrawnWhereItBelongs(t *testing.T) {
	got := script(t, `
const element = () => ({hidden: true, dataset: {}, style: {}, childNodes: [], append() {}, replaceChildren() {}, setAttribute() {}});
globalThis.document = {getElementById: element, createElement: element};
globalThis.ResizeObserver = class { observe() {} };
const {View} = await import("./view.js");
const subs = [], host = {subscribe(uri, sub) { subs.push(sub); }, unsubscribe() {}};
const view = new View(host), terminal = n => ({id: "pty-" + n, uri: "x:/" + n, state: "running", machine: "m", name: "n"});
const drawn = () => new Promise(done => setTimeout(() => done(view.term.drawn), 100));
view.show(terminal(1));
subs[0].load({content: []}, "first");
subs[0].apply({type: "terminal/data", data: "of the first"});
view.show(terminal(2));
subs[1].load({content: [{type: "unclassified", value: "of the second"}]}, "first");
console.log(await drawn());
subs[1].apply({type: "terminal/data", data: "before"});
subs[1].apply({type: "terminal/cleared"});
subs[1].apply({type: "terminal/data", data: "after"});
console.log(await drawn());
`)
	if want := "of the second\nafter"; got != want {
		t.Errorf("the page draws\n%s\nwant\n%s", got, want)
	}
}

// A guest who clicks while the host cannot be reached is told so, and can click again.
func TestAGuestWithoutAConnection(t *testing.T) {
	got := script(t, `
const elements = {};
globalThis.document = {getElementById: id => elements[id] ??= {hidden: true}};
globalThis.location = {hash: "#id.secret"};
globalThis.fetch = async () => { throw new TypeError("offline"); };
await import("./guest.js");
await elements.open.onclick();
console.log(elements.wrong.hidden, elements.wrong.textContent);
`)
	if want := "false The host cannot be reached. Try again later."; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
}

// The page of people says that the host cannot be reached, and takes that back once it
// is.
func TestPeopleWithoutAConnection(t *testing.T) {
	got := script(t, `
const elements = {}, on = {};
globalThis.document = {getElementById: id => elements[id] ??= {hidden: true, textContent: "loading…", value: "", children: [], addEventListener() {}, replaceChildren() {}}};
globalThis.addEventListener = (name, f) => { on[name] = f; };
globalThis.fetch = async () => { throw new TypeError("offline"); };
const settled = () => new Promise(r => setTimeout(r));
await import("./people.js");
await settled();
console.log(elements.notice.hidden, elements.notice.textContent, "[" + elements.who.textContent + "]");
globalThis.fetch = async () => ({ok: true, json: async () => ({me: "ann", entries: []})});
on.visibilitychange();
await settled();
console.log(elements.notice.hidden, elements.who.textContent);
`)
	if want := "false The host cannot be reached. Try again later. []\ntrue You are ann. This is yours."; got != want {
		t.Errorf("the page says\n%s\nwant\n%s", got, want)
	}
}

// A move to the right never overwrites the end of a line that is longer than the widest
// terminal.
func TestLongLinesAreKept(t *testing.T) {
	got := script(t, `
const {lines} = await import("./text.js");
const [row] = lines("x".repeat(3000) + "\x1b[5Cy\n", 10);
console.log(row.length, row.at(-1)[0]);
`)
	if want := "3001 y"; got != want {
		t.Errorf("a line of 3000 characters and one more is %q, want %q", got, want)
	}
}

// A parameter with parts between colons (ISO 8613-6) is one parameter: its parts are not
// others.
func TestStylesWithColons(t *testing.T) {
	got := script(t, `
const {lines} = await import("./text.js");
for (const text of ["\x1b[4:3ma", "\x1b[1;4;4:0ma", "\x1b[38:2::1:2:3ma", "\x1b[38:2:1:2:3ma", "\x1b[48:5:231;1ma", "\x1b[58:2::1:2:3ma", "\x1b[38;2;1;2;3;1ma"])
  console.log(JSON.stringify(lines(text, 1)[0][0][1]));
`)
	want := strings.Join([]string{`{"under":true}`, `{"bold":true}`, `{"fg":"rgb(1,2,3)"}`, `{"fg":"rgb(1,2,3)"}`, `{"bg":"rgb(255,255,255)","bold":true}`, `{}`,
		`{"fg":"rgb(1,2,3)","bold":true}`}, "\n")
	if got != want {
		t.Errorf("the styles are\n%s\nwant\n%s", got, want)
	}
}

// CSI with a prefix is no style: shells and editors set how keys are reported with "CSI >
// 4 ; 1 m".
func TestPrefixedSequencesAreNoStyles(t *testing.T) {
	got := script(t, `
const {lines} = await import("./text.js");
for (const text of ["\x1b[>4;1ma", "\x1b[>4;2ma", "\x1b[?4;1ma", "\x1b[31m\x1b[>4ma"]) console.log(JSON.stringify(lines(text, 1)[0][0][1]));
`)
	if want := "{}\n{}\n{}\n" + `{"fg":"#d0403f"}`; got != want {
		t.Errorf("the styles are\n%s\nwant\n%s", got, want)
	}
}
