import "./style.css"
import { said } from "./said"

document.querySelector("#said")!.textContent = said
import.meta.hot!.accept("./said", m => { document.querySelector("#said")!.textContent = m!.said })
