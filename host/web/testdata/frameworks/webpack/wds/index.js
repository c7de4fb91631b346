import "./style.css"
import pic from "./pic.svg"
import { said } from "./said"

const show = () => { document.querySelector("#said").textContent = said }
show()
document.querySelector("#pic").src = pic
module.hot.accept("./said", show)
