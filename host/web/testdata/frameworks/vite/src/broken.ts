export const said = "one
