package shell

// Editor is the editor that every system of this kind has.
const Editor = "notepad"
