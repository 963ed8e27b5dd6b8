// A Go service that uses rueidislock, for the benchmark. Reads JSON requests and writes JSON replies, one per line.
//
// Verbs: "connect" {port, leaseMs}, "pairs" {seconds, parallel}, "one-at-a-time" {seconds} and "crowd", as in bench/src/worker/orders.ts.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sys/unix"
)

// The number of free locks, the same as for the contestants on Node.js.
const names = 1024

type request struct {
	ID           int     `json:"id"`
	Verb         string  `json:"verb"`
	Port         int     `json:"port"`
	LeaseMs      int     `json:"leaseMs"`
	Seconds      float64 `json:"seconds"`
	Parallel     int     `json:"parallel"`
	Lock         string  `json:"lock"`
	Callers      int     `json:"callers"`
	SectionMs    float64 `json:"sectionMs"`
	FromMs       float64 `json:"fromMs"`
	UntilMs      float64 `json:"untilMs"`
	CheckUntilMs float64 `json:"checkUntilMs"`
}

type answer struct {
	ID    int    `json:"id"`
	OK    bool   `json:"ok"`
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

type crowdDone struct {
	Sections       []float64 `json:"sections"`
	WaitingSinceMs []float64 `json:"waitingSinceMs"`
	ProcessorUs    float64   `json:"processorUs"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	out := json.NewEncoder(os.Stdout)
	var locker rueidislock.Locker
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		value, err := obey(&locker, asked)
		said := answer{ID: asked.ID, OK: err == nil, Value: value}
		if err != nil {
			said.Error = err.Error()
		}
		if err := out.Encode(said); err != nil {
			os.Exit(1)
		}
	}
}

func obey(locker *rueidislock.Locker, asked request) (any, error) {
	if asked.Verb == "connect" {
		opened, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{fmt.Sprintf("127.0.0.1:%d", asked.Port)}},
			KeyValidity:    time.Duration(asked.LeaseMs) * time.Millisecond,
			KeyMajority:    1,
			NoLoopTracking: true,
		})
		*locker = opened
		return err == nil, err
	}
	if *locker == nil {
		return nil, errors.New("connect first")
	}
	switch asked.Verb {
	case "pairs":
		return pairs(*locker, asked)
	case "one-at-a-time":
		return oneAtATime(*locker, asked)
	case "crowd":
		return crowd(*locker, asked)
	}
	return nil, fmt.Errorf("there is no verb %s", asked.Verb)
}

// Acquires and releases free locks. No two callers use the same names.
func pairs(locker rueidislock.Locker, asked request) (any, error) {
	before := processorUs()
	startedAtMs := machineMs()
	endAtMs := startedAtMs + asked.Seconds*1_000
	var count atomic.Int64
	var first atomic.Pointer[error]
	var callers sync.WaitGroup
	for caller := range asked.Parallel {
		callers.Go(func() {
			for i := caller; machineMs() < endAtMs; i += asked.Parallel {
				_, release, err := locker.WithContext(context.Background(), free(i))
				if err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
				release()
				count.Add(1)
			}
		})
	}
	callers.Wait()
	if err := first.Load(); err != nil {
		return nil, *err
	}
	return map[string]float64{
		"pairs":       float64(count.Load()),
		"tookMs":      machineMs() - startedAtMs,
		"processorUs": processorUs() - before,
	}, nil
}

func oneAtATime(locker rueidislock.Locker, asked request) (any, error) {
	var times []float64
	startedAtMs := machineMs()
	endAtMs := startedAtMs + asked.Seconds*1_000
	for i := 0; startedAtMs < endAtMs; i++ {
		_, release, err := locker.WithContext(context.Background(), free(i))
		if err != nil {
			return nil, err
		}
		release()
		nowMs := machineMs()
		times = append(times, (nowMs-startedAtMs)*1_000)
		startedAtMs = nowMs
	}
	sort.Float64s(times)
	return map[string]float64{"p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}, nil
}

// Many callers contend for one name; all critical sections are recorded. Finally, waiting callers are abandoned.
func crowd(locker rueidislock.Locker, asked request) (any, error) {
	var guard sync.Mutex
	sections := []float64{}
	waitingSince := make([]float64, asked.Callers)
	var failure error
	var callers sync.WaitGroup
	for caller := range asked.Callers {
		waitingSince[caller] = math.NaN()
		callers.Go(func() {
			for askedAtMs := machineMs(); askedAtMs < asked.CheckUntilMs; askedAtMs = machineMs() {
				guard.Lock()
				waitingSince[caller] = askedAtMs
				guard.Unlock()
				_, release, err := locker.WithContext(context.Background(), asked.Lock)
				startedAtMs := machineMs()
				if err != nil {
					guard.Lock()
					failure = err
					guard.Unlock()
					return
				}
				if asked.SectionMs > 0 {
					time.Sleep(time.Duration(asked.SectionMs * float64(time.Millisecond)))
				} else if startedAtMs >= asked.UntilMs {
					runtime.Gosched()
				}
				endedAtMs := machineMs()
				guard.Lock()
				waitingSince[caller] = math.NaN()
				sections = append(sections, float64(caller), askedAtMs, startedAtMs, endedAtMs)
				guard.Unlock()
				release()
			}
		})
	}
	sleepUntil(asked.FromMs)
	before := processorUs()
	sleepUntil(asked.UntilMs)
	used := processorUs() - before
	done := crowdDone{WaitingSinceMs: []float64{}, ProcessorUs: used}
	guard.Lock()
	for _, sinceMs := range waitingSince {
		if !math.IsNaN(sinceMs) {
			done.WaitingSinceMs = append(done.WaitingSinceMs, sinceMs)
		}
	}
	guard.Unlock()
	over := make(chan struct{})
	go func() { callers.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(time.Duration((asked.CheckUntilMs - machineMs()) * float64(time.Millisecond))):
	}
	guard.Lock()
	defer guard.Unlock()
	done.Sections = append([]float64{}, sections...)
	return done, failure
}

func free(i int) string {
	return fmt.Sprintf("order:%d", i%names)
}

func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(share*float64(len(sorted)-1))]
}

// Milliseconds on the machine's monotonic clock, which Node.js uses too.
func machineMs() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return float64(now.Sec)*1e3 + float64(now.Nsec)/1e6
}

func processorUs() float64 {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		panic(err)
	}
	return float64(used.Sec)*1e6 + float64(used.Nsec)/1e3
}

func sleepUntil(atMs float64) {
	time.Sleep(time.Duration((atMs - machineMs()) * float64(time.Millisecond)))
}
