package transport

// Messages carries the messages of calls. Each ordered pair of different ranks has its own
// stream, in order. A rank must not send to itself.
type Messages interface {
	// Put makes the next bytes of message m available to rank `to` and returns how many it
	// took: all of m.Bytes, or a positive multiple of 16, so that no element is torn. Where the
	// transport shows the sender's own memory, m.Bytes must not change before Drain returns.
	Put(to int, m *Message) (n int, err error)
	// Drain waits until rank `to` has taken everything that was put.
	Drain(to int) error
	// Next waits for the next bytes of the stream from rank `from`. The view is valid until Take.
	Next(from int) (view Message, err error)
	// Take gives the view of Next back to the sender.
	Take(from int)
}

// Message is a part of a message between two ranks, with the words that travel beside it.
type Message struct {
	Bytes []byte // the next part
	Total int    // length of the whole message
	Seq   uint64 // in calls: number of the call
	// Clock, in calls, is the number of messages on the longest chain of dependent messages
	// that ends with this one. Conformance suites compare it with the Cost of a kernel.
	Clock uint32
}
