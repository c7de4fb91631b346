// Package deliver sends messages to receivers that somebody has named by a URL, and has
// the rules for what a receiver may do: where it may be, how long it may take, how much
// it may answer, and when a message is sent again. The daemon and the host both use it.
//
//	client := deliver.Guard{}.Client(nil)
//	for try := 0; try < deliver.Tries && retry.Wait(ctx, deliver.Pause(try, after)); try++ {
//		r := deliver.Send(client, request, 4<<10)
//		...
//	}
package deliver
