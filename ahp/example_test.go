package ahp_test

import (
	"encoding/json"
	"fmt"

	"tether/ahp"
)

func Example() {
	state := ahp.TerminalState{Title: "zsh", Claim: ahp.ClientClaim("laptop-7f3a"), ExecutionTarget: ahp.TargetClient}
	for _, raw := range []string{
		`{"type":"terminal/data","data":"$ "}`,
		`{"type":"terminal/commandExecuted","commandId":"1","commandLine":"make","timestamp":1760000000000}`,
		`{"type":"terminal/data","data":"ok\r\n"}`,
		`{"type":"terminal/commandFinished","commandId":"1","exitCode":0}`,
		`{"type":"terminal/exited","exitCode":0}`,
	} {
		action, err := ahp.DecodeAction([]byte(raw))
		if err != nil {
			fmt.Println(err)
			return
		}
		state = ahp.ReduceTerminal(state, action)
	}
	fmt.Printf("%q, %s, %d parts\n", state.Text(), state.Lifecycle.Status, len(state.Content))
	// Output: "$ ok\r\n", exited, 2 parts
}

func ExampleNegotiate() {
	fmt.Println(ahp.Negotiate([]string{"0.9.0", "1.1.0", "2.0.0"}))
	fmt.Println(ahp.Negotiate([]string{"0.5.2"}))
	// Output:
	// 1.1.0 <nil>
	//  no common protocol version: offered 0.5.2, supported 1.0.0, 0.9.0, 0.8.0, 0.7.0
}

func ExampleTerminalState_MarshalFor() {
	s := ahp.TerminalState{Title: "zsh", Claim: ahp.ClientClaim("c"), Lifecycle: ahp.Exited(new(int64(2)))}
	fmt.Println(string(s.MarshalFor("1.0.0")))
	fmt.Println(string(s.MarshalFor("0.8.0")))
	// Output:
	// {"title":"zsh","content":[],"claim":{"kind":"client","clientId":"c"},"lifecycle":{"status":"exited","exitCode":2}}
	// {"title":"zsh","content":[],"claim":{"kind":"client","clientId":"c"},"exitCode":2}
}

func ExampleFindClientTerminals() {
	var r ahp.InitializeResult
	answer := `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[],"_meta":{"tether/clientTerminals":{"version":1,"resume":true}}}`
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		fmt.Println(err)
	}
	marker, ok := ahp.FindClientTerminals(r)
	fmt.Println(ok, marker.Resume, marker.MaxDataBytes)
	// Output: true true 65536
}

func ExampleAppendOutput() {
	fmt.Println(string(ahp.AppendOutput(nil, ahp.NewTerminalURI("6d1e"), 4, []byte("ok\r\n"), 120)))
	// Output: {"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-terminal:/6d1e","clientSeq":4,"action":{"type":"terminal/output","data":"ok\r\n","_meta":{"tether/offset":120}}}}
}
