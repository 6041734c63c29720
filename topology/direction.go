package topology

import "fmt"

// Direction is one of the four ways from a rank to a neighbour.
type Direction uint8

const (
	East  Direction = iota // +x: on a ring, the next rank
	West                   // -x: on a ring, the previous rank
	North                  // -y
	South                  // +y
)

// String returns "East", "West", "North" or "South".
func (d Direction) String() string {
	names := [...]string{East: "East", West: "West", North: "North", South: "South"}
	if int(d) >= len(names) {
		return fmt.Sprintf("Direction(%d)", uint8(d))
	}
	return names[d]
}

// None stands for a missing neighbour, parent or child.
const None = -1

// Neighbors holds the neighbours of one rank, indexed by Direction: a rank each,
// or None. On a ring of two, East and West hold the same rank.
type Neighbors [4]int

// Peer returns the neighbour in direction d; ok is false, and peer is None, if it has
// none. Precondition: d is one of the four constants.
func (n Neighbors) Peer(d Direction) (peer int, ok bool) {
	return n[d], n[d] != None
}
