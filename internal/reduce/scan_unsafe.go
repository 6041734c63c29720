package reduce

import "unsafe"

// Scan stores partial results in one pass over memory: to destination k the reduction of the
// sources 0 to k, with exclusive of the sources 0 to k-1:
//
//	dsts[k][i] = (srcs[0][i] op srcs[1][i]) ... op srcs[k][i]
//
// Each has the bits that [Many] gives for the same sources. The first destination of an
// exclusive scan is not touched, since it has no operands. A nil destination is skipped, as
// are all from len(dsts) on; len(dsts) <= len(srcs). op is not [Avg].
//
// A destination may be exactly the source of the same index; otherwise the
// buffers do not overlap. Scan keeps neither slice.
func Scan(t Type, op Op, dsts, srcs []unsafe.Pointer, n int, exclusive bool) {
	best.scan(t, op, dsts, srcs, n, exclusive)
}

func (m implementation) scan(t Type, op Op, dsts, srcs []unsafe.Pointer, n int, exclusive bool) {
	for len(dsts) > 0 && dsts[len(dsts)-1] == nil {
		dsts = dsts[:len(dsts)-1] // nor are their sources read
	}
	switch {
	case len(dsts) == 0 || n == 0:
	case t.half():
		m.scanHalves(t, op, dsts, srcs, n, exclusive)
	default:
		m.scanTiles(t, op, dsts, srcs, n, exclusive)
	}
}

// scanTiles holds the running result of a tile where it was last stored, or in a spare tile. An
// exclusive scan combines it with the next source before it stores it, since the destination
// may be that source, so it uses two spare tiles in turn.
func (m implementation) scanTiles(t Type, op Op, dsts, srcs []unsafe.Pointer, n int, exclusive bool) {
	spare := spares.Get().(*[2]tile)
	defer spares.Put(spare)
	size := t.Size()
	for done := 0; done < n; done += tileBytes / size {
		at, count := done*size, min(n-done, tileBytes/size)
		acc := unsafe.Add(srcs[0], at)
		if dsts[0] != nil && !exclusive {
			move(unsafe.Add(dsts[0], at), acc, count*size)
		}

		for k := 1; k < len(dsts); k++ {
			next := unsafe.Pointer(&spare[k%2])
			if dsts[k] != nil && !exclusive {
				next = unsafe.Add(dsts[k], at)
			}
			if !exclusive || k+1 < len(dsts) {
				m.pair(t, op, next, acc, unsafe.Add(srcs[k], at), count)
			}

			if dsts[k] != nil && exclusive {
				move(unsafe.Add(dsts[k], at), acc, count*size)
			}
			acc = next
		}
	}
}

// scanHalves reduces in Go what assembly leaves, with the running result in float32 as in
// halves. A source is read before its destination is stored.
func (m implementation) scanHalves(t Type, op Op, dsts, srcs []unsafe.Pointer, n int, exclusive bool) {
	done := m.reduceEach(t, op, dsts, srcs, n*t.Size(), exclusive) / t.Size()
	var room [2][halfTile]float32
	for ; done < n; done += halfTile {
		at, count := done*t.Size(), min(n-done, halfTile)
		acc, x := room[0][:count], room[1][:count]
		widenAt(t, acc, unsafe.Add(srcs[0], at))
		if dsts[0] != nil && !exclusive {
			narrowAt(t, unsafe.Add(dsts[0], at), acc)
		}

		for k := 1; k < len(dsts); k++ {
			widenAt(t, x, unsafe.Add(srcs[k], at))
			if !exclusive {
				reduceFloats(op, acc, x)
			}

			if dsts[k] != nil {
				narrowAt(t, unsafe.Add(dsts[k], at), acc)
			}
			if exclusive {
				reduceFloats(op, acc, x)
			}
		}
	}
}

// reduceEach computes every result of a scan separately, tile by tile: up to some hundred
// sources that is faster in assembly than converting tiles to float32 and back in Go. The
// last result comes first, since its destination may be a source that no other result
// needs. It returns the number of bytes done.
func (m implementation) reduceEach(t Type, op Op, dsts, srcs []unsafe.Pointer, bytes int, exclusive bool) (done int) {
	for {
		reduced := 0
		for k := len(dsts) - 1; k >= 0; k-- {
			sources := k + 1
			if exclusive {
				sources = k
			}
			if dsts[k] != nil && sources > 0 {
				reduced = m.reduce(t, op, dsts[k:k+1], srcs[:sources], done, min(bytes-done, tileBytes), 1, false)
			}
		}

		done += reduced
		if reduced < tileBytes {
			return done
		}
	}
}
