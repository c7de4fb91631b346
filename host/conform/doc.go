// Package conform checks an agent host from outside. It checks the parts of AHP that
// terminals need, and the rules of docs/PROTOCOL.md for client-executed terminals.
//
//	report, err := conform.Run(ctx, conform.Options{Endpoint: client.Endpoint{URL: url, Token: token}})
//	for _, r := range report.Results { fmt.Println(r.Rule, r.Verdict, r.Why) }
//
// It is only a client: it connects with its own client ids, makes its own terminals and
// disposes of them. If the host starts a shell for a terminal, the shell is asked to
// print a word.
package conform
