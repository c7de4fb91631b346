// A lent port in a window of its own. The host answers the page with a code, which the page brings to the preview's own name in a form: so the
// code is in no address, and the preview sees which page has sent it.
export async function openPreview(path, wanted, target) {
  const answer = await fetch(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(wanted)}).catch(() => null);
  if (!answer) return "The host cannot be reached.";
  if (!answer.ok) return (await answer.text()).trim();
  const {url, code} = await answer.json();
  const form = Object.assign(document.createElement("form"), {method: "post", action: url, target, rel: target === "_blank" ? "noopener" : "", hidden: true});
  form.append(Object.assign(document.createElement("input"), {type: "hidden", name: "code", value: code}));
  document.body.append(form);
  form.submit();
  form.remove();
  return "";
}

// pathAt returns the path of a URL that a program has printed, if it is at the port.
export function pathAt(url, port) {
  const u = URL.parse?.(url ?? "");
  return u && Number(u.port || (u.protocol === "https:" ? 443 : 80)) === port ? u.pathname + u.search : "/";
}
