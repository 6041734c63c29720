package packet

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
	"github.com/stretchr/testify/require"
)

// Whatever another process sends, this one does not panic, and goes on or fails its groups.
func FuzzPackets(f *testing.F) {
	const id = 7
	for k := kind(0); k <= kindCount; k++ {
		for _, n := range []int{0, 8, partHead, lineEntry, 8 * groupsync.StateWords, 8*groupsync.StateWords + 24, roundHead, 100} {
			b := make([]byte, headBytes+n)
			head{kind: k, from: 1, group: id, number: 1}.encode(b)
			f.Add(b, uint8(1))
		}
	}
	for _, lines := range [][]int{{1}, {2, 1}, {0}, {1, 9}} {
		b := make([]byte, headBytes, headBytes+len(lines)*(lineEntry+lineHead+100))
		head{kind: kindLines, from: 1, group: id, number: 1}.encode(b)
		for _, rank := range lines {
			b = binary.LittleEndian.AppendUint32(b, uint32(rank))
			b = binary.LittleEndian.AppendUint32(b, uint32(lineHead+100))
			b = binary.LittleEndian.AppendUint64(b, uint64(len(lines)))
			b = append(b, make([]byte, lineHead+100)...)
		}
		f.Add(b, uint8(0))
	}
	failed := encodeFailure(proposed(1))
	f.Add(append(func() []byte {
		b := make([]byte, headBytes)
		head{kind: kindFailed, from: 1, group: id, number: 1}.encode(b)
		return b
	}(), failed...), uint8(1))
	f.Fuzz(func(t *testing.T, packet []byte, from uint8) {
		p := inRounds(processes(3), 2)[0]
		g := newGroup(p, id, 0, []int{0, 1, 2})
		p.groups[id] = &entry{group: g, processOf: g.processOf, hasLeft: make([]bool, len(g.processOf))}
		e := &transport.Arrival{Ctx: t.Context(), Seq: 1}
		require.NoError(t, g.member.Begin(e))
		g.member.Publish(e)
		g.lines.send(e)
		for range 2 {
			p.Deliver(1+int(from)%2, slices.Clone(packet), false)
		}
		require.Equal(t, p.err != nil, g.member.Failed() && g.sync.FailedBy() == 0, "%v", p.err)
	})
}
