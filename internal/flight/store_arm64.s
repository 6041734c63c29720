//go:build !noasm

#include "textflag.h"

// func put(r, next *record)
TEXT ·put(SB), NOSPLIT, $0-16
	MOVD r+0(FP), R0
	MOVD next+8(FP), R1
	MOVD 0(R1), R2
	ORR  $255, R2, R3
	MOVD R3, 0(R0)
	DMB  $0xA // ISHST: the head before the words
	MOVD 8(R1), R3
	MOVD 16(R1), R4
	MOVD 24(R1), R5
	MOVD 32(R1), R6
	MOVD 40(R1), R7
	MOVD 48(R1), R8
	MOVD 56(R1), R9
	MOVD R3, 8(R0)
	MOVD R4, 16(R0)
	MOVD R5, 24(R0)
	MOVD R6, 32(R0)
	MOVD R7, 40(R0)
	MOVD R8, 48(R0)
	MOVD R9, 56(R0)
	STLR R2, (R0)
	RET
