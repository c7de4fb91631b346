// The page of a link that logs a browser in. The link's code is in its fragment, which browsers do not send: a click sends it, so that
// programs that only look at links do not use it up. Without scripts, the person types the code.
const code = document.getElementById("code");

function take() {
  const given = location.hash.slice(1);
  code.value = given;
  code.type = given ? "hidden" : "text";
  document.querySelector("label").hidden = given !== "";
  if (given) document.querySelector("button").focus();
}

take();
addEventListener("hashchange", take); // another link in the same window
