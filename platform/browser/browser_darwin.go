package browser

func command() []string { return []string{"open"} }
