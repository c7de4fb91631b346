document.querySelector("#said").textContent = "one"
