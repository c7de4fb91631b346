import "./style.css"

export default { title: "Page" }
export const Said = { render: () => '<p id="said">one</p><img id="pic" src="/pic.svg">' }
