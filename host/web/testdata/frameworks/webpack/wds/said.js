export const said = "one"
