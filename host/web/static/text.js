// Text from programs, made safe for a page: it never becomes markup, and it does not change the direction or order of other text.

// Controls, changes of the direction of writing, characters without a width, and tags (SEC-35).
const bidi = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\u{e0001}|[\u{e0020}-\u{e007f}]/gu;

// clean returns a title, path or command line as one line.
export const clean = s => String(s ?? "").replace(unseen, "").slice(0, 2000);

// shown returns output for the screen. Characters that change the direction of writing become U+FFFD, so that they are visible and swap no
// letters.
export const shown = s => s.replace(bidi, "\ufffd");

export function duration(ms) {
  if (ms == null) return "";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + " s";
  const m = Math.floor(ms / 60000);
  return m < 60 ? m + " min " + Math.round(ms / 1000 % 60) + " s" : Math.floor(m / 60) + " h " + m % 60 + " min";
}

// when returns a time of day, with the date if it is not today.
export function when(ms) {
  const at = new Date(ms), day = at.toDateString() === new Date().toDateString();
  return day ? at.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"}) : at.toLocaleString([], {dateStyle: "short", timeStyle: "short"});
}

export function bytes(n) { return n < 1000 ? n + " bytes" : n < 1e6 ? (n / 1000).toFixed(0) + " kB" : (n / 1e6).toFixed(1) + " MB"; }

// place returns a working directory as a path, also if it is a file URL.
export function place(cwd) {
  try {
    return clean(cwd?.startsWith("file:") ? decodeURIComponent(new URL(cwd).pathname) : cwd);
  } catch { return clean(cwd); }
}

// safeLink returns the URL if a page may offer it, else null.
export function safeLink(text) {
  try {
    const u = new URL(text);
    return ["http:", "https:", "mailto:"].includes(u.protocol) ? u.href : null;
  } catch { return null; }
}

const basic = ["#3b4048", "#d0403f", "#2f9e4f", "#b58900", "#2f74d0", "#a44fc0", "#1b95a5", "#a9b0b8",
  "#6b7480", "#ef5a5a", "#3fbf66", "#d3a61c", "#4f96f0", "#c272dd", "#2fb6c7", "#dfe3e8"];

export function colour(n) {
  if (n < 16) return basic[n];
  if (n > 231) { const g = 8 + 10 * (n - 232); return `rgb(${g},${g},${g})`; }
  const c = v => v ? 55 + 40 * v : 0;
  n -= 16;
  return `rgb(${c(Math.floor(n / 36))},${c(Math.floor(n / 6) % 6)},${c(n % 6)})`;
}

// sgr returns the style after the parameters of one "select graphic rendition" sequence, each a list of the numbers between its colons.
function sgr(style, parameters) {
  const s = {...style};
  for (let i = 0; i < parameters.length; i++) {
    const p = parameters[i], n = p[0];
    if (n === 0) for (const k in s) delete s[k];
    else if (n === 1) s.bold = true; else if (n === 2) s.dim = true; else if (n === 3) s.italic = true; else if (n === 7) s.swap = true;
    else if (n === 4) { if (p[1] === 0) delete s.under; else s.under = true; }
    else if (n === 22) { delete s.bold; delete s.dim; } else if (n === 23) delete s.italic; else if (n === 24) delete s.under; else if (n === 27) delete s.swap;
    else if (n >= 30 && n <= 37) s.fg = basic[n - 30]; else if (n >= 90 && n <= 97) s.fg = basic[n - 82]; else if (n === 39) delete s.fg;
    else if (n >= 40 && n <= 47) s.bg = basic[n - 40]; else if (n >= 100 && n <= 107) s.bg = basic[n - 92]; else if (n === 49) delete s.bg;
    else if (n === 38 || n === 48 || n === 58) { // 58 is the underline's
      const apart = p.length === 1; // its numbers are the next parameters
      const [kind, ...v] = apart ? parameters.slice(i + 1, i + 5).map(q => q[0]) : p.slice(1);
      let c;
      if (kind === 5) { c = colour(v[0] & 255); if (apart) i += 2; }
      else if (kind === 2) {
        const [r, g, b] = v.length > 3 ? v.slice(1) : v; // with colons, a colour space may come first
        c = `rgb(${r & 255},${g & 255},${b & 255})`;
        if (apart) i += 4;
      }
      if (c && n !== 58) s[n === 38 ? "fg" : "bg"] = c;
    }
  }
  return s;
}

// The page's background and text colours.
const grounds = {light: "#ffffff", dark: "#0f1216"}, inks = {light: "#1b1f24", dark: "#e4e8ee"};
const least = 4.5; // least contrast of text (WCAG AA)

function rgb(colour) {
  if (colour[0] === "#") return [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  return colour.match(/\d+/g).map(Number);
}

function luminance(c) {
  const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a, b) {
  const [x, y] = [luminance(rgb(a)), luminance(rgb(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

// readable returns a colour of text, moved towards black or white until it can be read on the ground.
export function readable(ink, ground) {
  if (contrast(ink, ground) >= least) return ink;
  const end = contrast("#000000", ground) > contrast("#ffffff", ground) ? 0 : 255, from = rgb(ink);
  for (let part = 0.1; part < 1; part += 0.1) {
    const c = `rgb(${from.map(v => Math.round(v + (end - v) * part)).join(",")})`;
    if (contrast(c, ground) >= least) return c;
  }
  return `rgb(${end},${end},${end})`;
}

const sequence = /\x1b\[([0-9:;<=>?]*)[ -/]*([@-~])|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|[\r\n\b\t]|[\x00-\x1f\x7f-\x9f]/g;

// lines renders output as a person saw it scroll by. Carriage returns and moves within a row overwrite; colours stay; moves between rows
// are left out. It returns the last rows, as many as most, each of cells [text, style].
export function lines(output, most) {
  const rows = [];
  let row = [], at = 0, style = {};
  const put = text => {
    for (const ch of shown(text)) row[at++] = [ch, style];
  };
  let from = 0;
  for (const m of output.matchAll(sequence)) {
    if (m.index > from) put(output.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[0] === "\n") { rows.push(row); row = []; at = 0; if (rows.length > 2 * most) rows.splice(0, most); }
    else if (m[0] === "\r") at = 0;
    else if (m[0] === "\b") at = Math.max(0, at - 1);
    else if (m[0] === "\t") { const to = at - at % 8 + 8; while (at < to) put(" "); }
    else if (m[2] === "m" && !/[<=>?]/.test(m[1])) style = sgr(style, (m[1] || "0").split(";").map(p => p.split(":").map(Number))); // a prefix: no style
    else if (m[2] === "K" && !m[1].startsWith("1")) { if (m[1] === "2") row = []; else row.length = Math.min(row.length, at); }
    else if (m[2] === "J" && m[1] === "2") { row = []; at = 0; }
    else if (m[2] === "G") at = Math.min(1000, Math.max(0, (parseInt(m[1], 10) || 1) - 1));
    else if (m[2] === "C") at = Math.max(at, Math.min(1000, at + (parseInt(m[1], 10) || 1)));
  }
  if (from < output.length) put(output.slice(from));
  if (row.length) rows.push(row);
  return rows.slice(-most);
}

// draw fills an element with rows. It makes only text nodes and styles, so that text cannot become markup.
export function draw(element, rows, search) {
  const parts = document.createDocumentFragment(), hole = [" ", {}]; // shared, because each change of style makes an element
  for (const row of rows) {
    let run = "", style = null;
    const flush = () => {
      if (run) parts.append(styled(run, style, search));
      run = "";
    };
    for (let i = 0; i < row.length; i++) {
      const [ch, s] = row[i] ?? hole;
      if (s !== style) { flush(); style = s; }
      run += ch;
    }
    flush();
    parts.append("\n");
  }
  element.replaceChildren(parts);
}

function styled(text, s, search) {
  const plain = !s || Object.keys(s).length === 0;
  const at = search ? text.toLowerCase().indexOf(search) : -1;
  if (plain && at < 0) return document.createTextNode(text);
  const e = document.createElement("span");
  if (!plain) {
    const theme = document.documentElement?.dataset.theme === "dark" ? "dark" : "light";
    const [fg, bg] = s.swap ? [s.bg ?? grounds[theme], s.fg ?? inks[theme]] : [s.fg, s.bg];
    if (fg || bg) e.style.color = readable(fg ?? inks[theme], bg ?? grounds[theme]);
    if (bg) e.style.background = bg;
    if (s.bold) e.style.fontWeight = "700";
    if (s.dim) e.style.opacity = ".65";
    if (s.italic) e.style.fontStyle = "italic";
    if (s.under) e.style.textDecoration = "underline";
  }
  if (at < 0) { e.textContent = text; return e; }
  let from = 0;
  for (let i = at; i >= 0; i = text.toLowerCase().indexOf(search, from)) {
    const hit = document.createElement("mark");
    hit.textContent = text.slice(i, i + search.length);
    e.append(text.slice(from, i), hit);
    from = i + search.length;
  }
  e.append(text.slice(from));
  return e;
}
