package syncmodel

import (
	"fmt"
	"testing"
)

// Between goroutine ranks the P2P shows a message in place. This is a separate model: one rank
// sends two messages to another, which copies them, while at any time the group may
// fail and either rank may be closed by another goroutine. The places in the code:
// transport/local/p2p.go (put, drained, next, take, withdraw), transport/internal/groupsync/p2p.go (rest,
// news, events), ccl/internal/p2p (progress.go, send.go, failure.go).

// A letterbox is the state that sender and receiver of a pair share, and the step of each.
type letterbox struct {
	posted, claim, taken uint8 // words of the mailbox
	memory               uint8 // the message that the sender's buffer holds, or:

	fail     bool
	departed [2]bool
	events   uint8
	resting  [2]bool
	token    [2]bool

	at, event  [2]uint8 // next steps, and events as of the last look, of sender and receiver
	flagged    [2]bool
	sending    uint8 // the number of the message
	withdraws  bool  // it has given up
	copying    bool  // the receiver reads memory
	copied     uint8 // the message that it started to read
	failedSend uint8 // the message whose send returned an error
	happens    [3]uint8
}

// What memory holds after a send has returned: whatever its caller writes.
const callersOwn = 99

const (
	theSender = iota
	theReceiver
)

// Steps of the sender.
const (
	writeMessage uint8 = iota
	storePosted
	wakeReceiver // if it rests
	testTaken    // also the first half of TryWithdraw
	claimBack    // the second: only a sender that withdraws
	senderNews   // whether events have grown
	senderRests  // announces that it sleeps, or sleeps
	senderClosed // looks
	senderFail
	senderLost
	sendSucceeds // its caller writes to memory
	sendFails    // the same
	senderThrough
)

// Steps of the receiver.
const (
	testPosted uint8 = iota
	receiverFails
	claimView
	startRead
	endRead
	storeTaken
	wakeSender
	receiverNews
	receiverRests
	receiverClosed
	receiverFail
	receiverLost
	receiverThrough
)

// What happens at any time, or never: the group fails, the sender is closed, the receiver
// is. Each in steps: a word, events, a token for each rank.
const (
	theFailure = iota
	sendersClose
	receiversClose
)

const (
	storeWord uint8 = iota
	growEvents
	tokenForSender
	tokenForReceiver
	happened
)

// A p2pRule is a part of the protocol without which a property breaks.
type p2pRule string

const (
	closeWithdraws   p2pRule = "a send of a rank that is closed takes its message back, even while the group lives"
	lostWithdraws    p2pRule = "a send to a rank that has left takes its message back"
	failureWithdraws p2pRule = "a send of a group that has failed takes its message back"
	viewedIsAwaited  p2pRule = "a message that is viewed cannot be taken back: the send waits until it is taken"
	takenSucceeds    p2pRule = "a send that gives up has succeeded if its message was taken"
	claimIsCAS       p2pRule = "either the receiver that views or the sender that takes back gets the message"
	writeThenPost    p2pRule = "a message is written before posted is stored"
	takeAfterCopy    p2pRule = "a receiver has copied a message before it stores taken"
	postThenResting  p2pRule = "a sender stores posted before it loads resting"
	takeThenResting  p2pRule = "a receiver stores taken before it loads resting"
	announceThenTest p2pRule = "a rank tests once more after it has announced that it rests"
	newsAreKept      p2pRule = "a rest compares events with its value at the last rest, not with its value at the start"
	p2pWordThenEvent p2pRule = "events grows after the word that it announces was stored"
)

var p2pRules = []p2pRule{
	closeWithdraws, lostWithdraws, failureWithdraws, viewedIsAwaited, takenSucceeds, claimIsCAS, writeThenPost,
	takeAfterCopy, postThenResting, takeThenResting, announceThenTest, newsAreKept, p2pWordThenEvent,
}

const lettersSent = 2

// viewOf and backOf are the values of claim.
func viewOf(n uint8) uint8 { return 2 * n }
func backOf(n uint8) uint8 { return 2*n + 1 }

// send is the sender's next step; ok is false if it can make none.
func (s letterbox) send(without p2pRule) (_ letterbox, broken string, ok bool) {
	n := s.sending
	at := &s.at[theSender]
	switch *at {
	case writeMessage:
		if without == writeThenPost {
			s.posted, *at = n, storePosted
			return s, "", true
		}
		if s.copying {
			broken = "the next message is written while the one before is copied"
		}
		s.memory, *at = n, storePosted
	case storePosted:
		if without == writeThenPost {
			s.memory = n
		}
		if without == postThenResting {
			if s.resting[theReceiver] {
				s.token[theReceiver] = true
			}
			*at = wakeReceiver
			return s, "", true
		}
		s.posted, *at = n, wakeReceiver
	case wakeReceiver:
		if without == postThenResting {
			s.posted = n
		} else if s.resting[theReceiver] {
			s.token[theReceiver] = true
		}
		*at = testTaken
	case testTaken:
		switch {
		case s.taken == n && (without != takenSucceeds || !s.withdraws):
			*at = sendSucceeds
		case s.taken == n:
			*at = sendFails
		case s.withdraws:
			*at = claimBack
		default:
			*at = senderNews
		}
	case claimBack:
		switch {
		case without == claimIsCAS:
			s.claim, *at = backOf(n), sendFails
		case s.claim < viewOf(n):
			s.claim, *at = backOf(n), sendFails
		case without == viewedIsAwaited:
			*at = sendFails
		default:
			*at = senderNews
		}
	case senderNews:
		*at = senderRests
		if s.event[theSender] != s.events {
			s.event[theSender], *at = s.events, senderClosed
			s.resting[theSender], s.flagged[theSender] = false, false
		}
	case senderRests:
		if ok := s.rest(theSender, without); !ok {
			return s, "", false
		}
		if *at = testTaken; without == announceThenTest && s.flagged[theSender] {
			*at = senderRests
		}
	case senderClosed:
		*at = senderFail
		if s.departed[theSender] {
			s.giveUp(without == closeWithdraws)
		}
	case senderFail:
		*at = senderLost
		if s.fail {
			s.giveUp(without == failureWithdraws)
		}
	case senderLost:
		*at = testTaken
		if s.departed[theReceiver] {
			s.giveUp(without == lostWithdraws)
		}
	case sendSucceeds, sendFails:
		if s.copying {
			broken = "a send has returned while its buffer is copied"
		}
		if *at == sendFails && s.taken >= n {
			broken = "a send fails although its message was received"
		}
		switch { // a sender that has given up starts nothing
		case *at == sendFails:
			s.failedSend, *at = n, senderThrough
		case s.withdraws || n == lettersSent:
			*at = senderThrough
		default:
			s.sending, *at = n+1, writeMessage
		}
		s.memory = callersOwn
		s.resting[theSender], s.flagged[theSender] = false, false
		if without == newsAreKept {
			s.event[theSender] = s.events
		}
	default:
		return s, "", false
	}
	return s, broken, true
}

// giveUp makes the sender take its message back, or return at once.
func (s *letterbox) giveUp(atOnce bool) {
	s.withdraws, s.at[theSender] = true, testTaken
	if atOnce {
		s.at[theSender] = sendFails
	}
}

// rest is a step of a rest: it announces it, or sleeps until a token has been left.
func (s *letterbox) rest(who int, without p2pRule) (ok bool) {
	if !s.flagged[who] {
		s.flagged[who], s.resting[who] = true, true
		return true
	}
	ok = s.token[who]
	s.token[who] = false
	return ok
}

// receive is the receiver's next step.
func (s letterbox) receive(without p2pRule) (_ letterbox, broken string, ok bool) {
	n := s.taken + 1
	at := &s.at[theReceiver]
	switch *at {
	case testPosted:
		switch {
		case s.posted >= n && s.claim < viewOf(n):
			*at = receiverFails
		default: // none, or it was taken back
			*at = receiverNews
		}
	case receiverFails:
		if *at = claimView; s.fail {
			*at = receiverNews
		}
	case claimView:
		if *at = startRead; s.claim >= viewOf(n) && without != claimIsCAS {
			*at = receiverNews
			break
		}
		s.claim = viewOf(n)
		s.resting[theReceiver], s.flagged[theReceiver] = false, false
		if without == takeAfterCopy {
			s.taken = n
		}
	case startRead:
		s.copying, s.copied, *at = true, s.memory, endRead
	case endRead:
		if without == takeAfterCopy {
			n--
		}
		if s.copied != n || s.memory != n {
			broken = fmt.Sprintf("the receive of message %d gets what is not in it", n)
		}
		if s.failedSend == n {
			broken = fmt.Sprintf("message %d is received although its send has failed", n)
		}
		s.copying, *at = false, storeTaken
	case storeTaken:
		if without == takeThenResting {
			if s.resting[theSender] {
				s.token[theSender] = true
			}
		} else if without != takeAfterCopy {
			s.taken = n
		}
		*at = wakeSender
	case wakeSender:
		if without == takeThenResting {
			s.taken = n
		} else if s.resting[theSender] {
			s.token[theSender] = true
		}
		if *at = testPosted; s.taken == lettersSent {
			*at = receiverThrough
		}
		if without == newsAreKept {
			s.event[theReceiver] = s.events
		}
	case receiverNews:
		*at = receiverRests
		if s.event[theReceiver] != s.events {
			s.event[theReceiver], *at = s.events, receiverClosed
			s.resting[theReceiver], s.flagged[theReceiver] = false, false
		}
	case receiverRests:
		if ok := s.rest(theReceiver, without); !ok {
			return s, "", false
		}
		if *at = testPosted; without == announceThenTest && s.flagged[theReceiver] {
			*at = receiverRests
		}
	case receiverClosed, receiverFail, receiverLost:
		ends := [...]bool{s.departed[theReceiver], s.fail, s.departed[theSender]}[*at-receiverClosed]
		if *at++; ends {
			*at = receiverThrough
		} else if *at == receiverThrough {
			*at = testPosted
		}
	default:
		return s, "", false
	}
	return s, broken, true
}

// happen is the next step of something that happens.
func (s letterbox) happen(what int, without p2pRule) (letterbox, bool) {
	at := &s.happens[what]
	step := *at
	if without == p2pWordThenEvent && step <= growEvents {
		step ^= storeWord ^ growEvents
	}
	switch step {
	case storeWord:
		switch what {
		case theFailure:
			s.fail = true
		case sendersClose:
			s.departed[theSender] = true
		case receiversClose:
			s.departed[theReceiver] = true
		}
	case growEvents:
		s.events++
	case tokenForSender:
		s.token[theSender] = true
	case tokenForReceiver:
		s.token[theReceiver] = true
	case happened:
		return s, false
	}
	*at++
	return s, true
}

// lettersBreak returns how a property breaks, if it does, and the number of states.
func lettersBreak(without p2pRule) (broken string, states int) {
	first := letterbox{sending: 1}
	visited := map[letterbox]bool{first: true}
	queue := []letterbox{first}
	add := func(s letterbox) {
		if !visited[s] {
			visited[s] = true
			queue = append(queue, s)
		}
	}
	for ; states < len(queue) && broken == ""; states++ {
		s := queue[states]
		stuck := true
		for _, step := range []func(p2pRule) (letterbox, string, bool){s.send, s.receive} {
			if next, bad, ok := step(without); ok {
				stuck = false
				if broken = bad; bad != "" {
					return broken, states
				}
				add(next)
			}
		}
		for what := range s.happens {
			if next, ok := s.happen(what, without); ok {
				stuck = stuck && s.happens[what] == 0 // it need not start, but must end
				add(next)
			}
		}
		through := s.at == [2]uint8{senderThrough, receiverThrough}
		if stuck && !through {
			broken = fmt.Sprintf("a rank rests forever: %+v", s)
		}
	}
	return broken, states
}

func TestP2P(t *testing.T) {
	broken, states := lettersBreak("")
	if broken != "" || states < 5000 {
		t.Errorf("%s (%d states)", broken, states)
	}
	t.Logf("%d states", states)
	for _, rule := range p2pRules {
		broken, states := lettersBreak(rule)
		if broken == "" {
			t.Errorf("nothing breaks without the rule: %s", rule)
		}
		t.Logf("without %q: %s (%d states)", rule, broken, states)
	}
}
