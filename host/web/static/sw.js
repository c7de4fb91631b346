// The page's service worker. It shows what the host pushes, and opens the terminal. It handles no requests.
addEventListener("install", () => skipWaiting());

addEventListener("push", e => {
  let n = {};
  try { n = e.data.json(); } catch { /* a message that is not the host's: the browser wants it shown */ }
  e.waitUntil(registration.showNotification(n.title || "tether-host", {body: n.text, tag: n.tag, renotify: Boolean(n.tag), icon: "/assets/icon-192.png", data: {open: n.open}}));
});

addEventListener("notificationclick", e => {
  e.notification.close();
  e.waitUntil(show(e.notification.data?.open));
});

// show focuses a window of the page, or opens one, and shows a terminal there.
async function show(path) {
  const to = new URL(path || "/", location.origin);
  if (to.origin !== location.origin) return;
  const all = (await clients.matchAll({type: "window", includeUncontrolled: true})).filter(c => new URL(c.url).pathname === "/");
  const one = all.find(c => new URL(c.url).hash === to.hash) ?? all.find(c => c.visibilityState === "visible") ?? all[0];
  if (!one) { await clients.openWindow(to.href); return; }
  one.postMessage({open: to.hash});
  await one.focus();
}
