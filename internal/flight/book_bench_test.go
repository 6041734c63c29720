package flight

import "testing"

// What a call costs that is recorded without the time.
func BenchmarkCall(b *testing.B) {
	for _, label := range []string{"", "layer 12, gradients"} {
		b.Run("label="+label, func(b *testing.B) {
			book := NewBook(make([]byte, PartBytes(2)), 0, 1)
			var l Lane
			book.Open(&l, Group{Size: 2})
			what := book.NewWhat("all_reduce", "float32", "sum", "direct")
			b.ResetTimer()
			for i := range b.N {
				l.Begin(uint64(i+1), what, 1, label, false)
				l.Inside()
				l.End(true)
			}
		})
	}
}
