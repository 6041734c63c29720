package shm

import "os"

// SegmentBytes returns how many bytes of /dev/shm a job of so many ranks takes, from
// when its rank 0 calls Join; regions and groups that it makes come on top. Ranks are at
// least 1.
func SegmentBytes(ranks int) int {
	h := header{ranks: ranks, arena: DefaultGeometry(ranks).layout(ranks).total, page: os.Getpagesize()}
	return h.total()
}
