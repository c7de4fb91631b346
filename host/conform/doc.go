// Package conform checks an agent host from outside: whether it follows the parts of AHP that terminals need, and the rules for
// client-executed terminals of docs/PROTOCOL.md.
//
//	report, err := conform.Run(ctx, conform.Options{Endpoint: client.Endpoint{URL: url, Token: token}})
//	for _, r := range report.Results { fmt.Println(r.Rule, r.Verdict, r.Why) }
//
// It is only a client: it connects under its own names, makes its own terminals and disposes of them. A host that starts a shell for them
// is asked to print a word.
package conform
