// A server of files with net/http, whose page reloads itself when one of them changes.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	http.Handle("/", http.FileServer(http.Dir("public")))
	http.HandleFunc("/changes", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		last, _ := os.ReadFile("public/said.js")
		for first := true; r.Context().Err() == nil; first = false {
			now, _ := os.ReadFile("public/said.js")
			if first || string(now) != string(last) {
				fmt.Fprintf(w, "data: %v\n\n", !first)
				w.(http.Flusher).Flush()
			}
			last = now
			time.Sleep(50 * time.Millisecond)
		}
	})
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
