package outward

// TokenForms are the prefixes and expressions of known tokens.
func TokenForms() (forms [][2]string) {
	for _, t := range tokens {
		forms = append(forms, [2]string{t.prefix, t.re})
	}
	return forms
}
