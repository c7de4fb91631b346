export const said: string = "one"
