//go:build interleave

package interleave

// isOpen reports whether a receive from a channel would return at once. The channel has a buffer,
// or is only closed: an unbuffered send is not seen.
//
//go:norace
func isOpen[A any](c <-chan A) bool {
	if c == nil {
		return false
	}
	if len(c) > 0 {
		return true
	}
	select {
	case <-c: // closed: it had nothing
		return true
	default:
		return false
	}
}

// channels is the condition that one of several channels is ready.
type channels[A, B, C, D any] struct {
	a <-chan A
	b <-chan B
	c <-chan C
	d <-chan D
}

//go:norace
func (w *channels[A, B, C, D]) isTrue() bool {
	return isOpen(w.a) || isOpen(w.b) || isOpen(w.c) || isOpen(w.d)
}

// first waits until a channel is ready, draws one of those that are, and returns its number.
func (w *channels[A, B, C, D]) first(s *scheduler) int {
	s.block(w, "a channel")
	return w.draw(s)
}

//go:norace
func (w *channels[A, B, C, D]) draw(s *scheduler) int {
	hideFromRaceDetector()
	isReady := [4]bool{isOpen(w.a), isOpen(w.b), isOpen(w.c), isOpen(w.d)}
	showToRaceDetector()

	var ready [4]int
	n := 0
	for i, is := range isReady {
		if is {
			ready[n] = i
			n++
		}
	}
	if n == 1 {
		return ready[0]
	}
	return ready[s.random.draw(n)]
}

// Receive receives from a channel.
func Receive[A any](a <-chan A) {
	if s := known(); s != nil {
		s.block(&channels[A, A, A, A]{a: a}, "a channel")
	}
	<-a
}

// First receives from one of two channels that is ready, and returns its number, from 0. A nil
// channel is never ready.
func First[A, B any](a <-chan A, b <-chan B) int {
	return FirstOfFour[A, B, struct{}, struct{}](a, b, nil, nil)
}

// FirstOfThree is First for three channels.
func FirstOfThree[A, B, C any](a <-chan A, b <-chan B, c <-chan C) int {
	return FirstOfFour[A, B, C, struct{}](a, b, c, nil)
}

// FirstOfFour is First for four channels.
func FirstOfFour[A, B, C, D any](a <-chan A, b <-chan B, c <-chan C, d <-chan D) int {
	if s := known(); s != nil {
		i := (&channels[A, B, C, D]{a, b, c, d}).first(s)

		switch i {
		case 0:
			<-a
		case 1:
			<-b
		case 2:
			<-c
		case 3:
			<-d
		}

		return i
	}

	select {
	case <-a:
		return 0
	case <-b:
		return 1
	case <-c:
		return 2
	case <-d:
		return 3
	}
}
