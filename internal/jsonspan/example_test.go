package jsonspan_test

import (
	"fmt"

	"tether/internal/jsonspan"
)

func ExampleObject() {
	msg := []byte(`{"channel": "ahp-terminal:/1", "serverSeq": 7, "action": {"data": "\u001b[1mok"}}`)
	var action []byte
	err := jsonspan.Object(msg, func(key, value []byte) error {
		switch string(key) {
		case "action":
			action = value
		case "serverSeq":
			n, err := jsonspan.Int(value)
			fmt.Println("serverSeq", n, err)
		}
		return nil
	})
	fmt.Printf("%s %v\n", action, err)
	// Output:
	// serverSeq 7 <nil>
	// {"data": "\u001b[1mok"} <nil>
}

func ExampleAppendQuote() {
	quoted := jsonspan.AppendQuote(nil, []byte("\x1b[1m<ok>\xff\r\n"))
	found, err := jsonspan.CheckString(quoted)
	fmt.Printf("%s %d %v\n", quoted, found.Size, err)
	text, err := jsonspan.AppendUnquote(nil, quoted)
	fmt.Printf("%q %v\n", text, err)
	// Output:
	// "\u001b[1m<ok>\ufffd\r\n" 13 <nil>
	// "\x1b[1m<ok>�\r\n" <nil>
}
