//go:build !race

package flight

// publish changes the state of a record: it stores its head. No store has to be visible before it:
// a reader that sees it without the time before it shows no time. The store of a word is never
// torn.
func publish(r *record, head uint64) { r[headWord] = head }
