// Worker-go is a worker of a Tessera deployment that runs functions of its own, in Go.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log"
	"math/big"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"example.com/worker/tesserav1"
)

//go:embed manifest.json
var manifest string

// slots are the calls of each endpoint that run at a time.
const slots = 2

// functions are the endpoints of manifest.json. They return when their context ends.
var functions = map[string]func(ctx context.Context, number int64) any{
	"is_prime": func(_ context.Context, number int64) any { return big.NewInt(number).ProbablyPrime(0) },
	"count": func(ctx context.Context, limit int64) any {
		found := 0
		for number := int64(2); number <= limit && ctx.Err() == nil; number++ {
			if big.NewInt(number).ProbablyPrime(0) {
				found++
			}
		}
		return found
	},
}

func main() {
	security := insecure.NewCredentials()
	if os.Getenv("TESSERA_TLS") != "" {
		security = credentials.NewTLS(nil)
	}
	connection, err := grpc.NewClient(cmp.Or(os.Getenv("TESSERA_ADDRESS"), "localhost:3000"), grpc.WithTransportCredentials(security))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("TESSERA_TOKEN"))
	w := &worker{client: tesserav1.NewWorkerServiceClient(connection)}
	for ctx.Err() == nil {
		log.Print(w.run(ctx))
		time.Sleep(time.Second)
	}
}

type worker struct {
	client tesserav1.WorkerServiceClient
	stream tesserav1.WorkerService_WorkClient
	calls  map[uint64]context.CancelFunc // Until their results are acknowledged.
	ends   chan *tesserav1.WorkResult
	beats  map[uint64]time.Time // When each heartbeat was sent that was not answered.
	heard  time.Time            // When the last answered heartbeat was sent.
}

// run works in one session. When its stream breaks, its calls end here, and run again somewhere.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.calls, w.beats, w.ends = map[uint64]context.CancelFunc{}, map[uint64]time.Time{}, make(chan *tesserav1.WorkResult, 1000)
	w.heard = time.Now()
	registered, err := w.client.Register(ctx, &tesserav1.RegisterRequest{
		Deployment: cmp.Or(os.Getenv("TESSERA_DEPLOYMENT"), "primes"), ProtocolMin: 1, ProtocolMax: 1,
		Code:    &tesserav1.RegisterRequest_ManifestJson{ManifestJson: manifest},
		Runtime: &tesserav1.WorkerRuntime{Language: "go", Pid: uint32(os.Getpid())},
	})
	if err != nil {
		return err
	}
	if w.stream, err = w.client.Work(ctx); err != nil {
		return err
	}
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Hello{Hello: &tesserav1.Hello{Session: registered.GetSession()}}})
	w.offer()
	log.Print("joined as ", registered.GetWorkerId())
	responses, failed := make(chan *tesserav1.WorkResponse, 1000), make(chan error, 1)
	go func(stream tesserav1.WorkerService_WorkClient) {
		response, err := stream.Recv()
		for ; err == nil; response, err = stream.Recv() {
			responses <- response
		}
		failed <- err
	}(w.stream)
	heartbeats := time.NewTicker(registered.GetHeartbeatInterval().AsDuration())
	defer heartbeats.Stop()
	// The node, which hears nothing, gives the calls to others soon after.
	fence := registered.GetSilenceLimit().AsDuration() * 10 / 15
	for sequence := uint64(1); ; {
		select {
		case response := <-responses:
			if err := w.take(ctx, response); err != nil {
				return err
			}
		case end := <-w.ends:
			w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Results{Results: &tesserav1.Results{Results: []*tesserav1.WorkResult{end}}}})
		case now := <-heartbeats.C:
			w.beats[sequence] = now
			w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Heartbeat{Heartbeat: &tesserav1.Heartbeat{Sequence: sequence}}})
			sequence++
		case <-time.After(time.Until(w.heard.Add(fence))):
			return errors.New("the node does not answer")
		case err := <-failed:
			return err
		}
	}
}

func (w *worker) take(ctx context.Context, response *tesserav1.WorkResponse) error {
	switch message := response.GetMessage().(type) {
	case *tesserav1.WorkResponse_Assignments:
		for _, assigned := range message.Assignments.GetCalls() {
			w.begin(ctx, assigned)
		}
	case *tesserav1.WorkResponse_Abort:
		if cancel := w.calls[message.Abort.GetId()]; cancel != nil {
			cancel()
		}
	case *tesserav1.WorkResponse_ResultsAck:
		for _, id := range message.ResultsAck.GetIds() {
			delete(w.calls, id)
		}
	case *tesserav1.WorkResponse_HeartbeatAck:
		w.heard = w.beats[message.HeartbeatAck.GetSequence()]
		delete(w.beats, message.HeartbeatAck.GetSequence())
	case *tesserav1.WorkResponse_Drain:
		return errors.New("the node asks this worker to end: " + message.Drain.GetReason())
	}
	return nil
}

func (w *worker) begin(ctx context.Context, assigned *tesserav1.Assignment) {
	id, ends := assigned.GetId(), w.ends
	ctx, cancel := context.WithTimeout(ctx, assigned.GetTimeLeft().AsDuration())
	w.calls[id] = cancel
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Accepted{Accepted: &tesserav1.Accepted{Ids: []uint64{id}}}})
	var input struct{ Number int64 }
	err := json.Unmarshal([]byte(assigned.GetJson()), &input)
	go func() {
		defer cancel()
		end := &tesserav1.WorkResult{Id: id}
		if err != nil {
			end.End = &tesserav1.WorkResult_Failure{Failure: &tesserav1.WorkFailure{Code: "invalid_argument", Reason: "ARGUMENTS_INVALID", Message: err.Error()}}
		} else if text, _ := json.Marshal(functions[assigned.GetEndpoint()](ctx, input.Number)); ctx.Err() == nil {
			end.End = &tesserav1.WorkResult_Json{Json: string(text)}
		} else {
			end.End = &tesserav1.WorkResult_Aborted{Aborted: &tesserav1.WorkAborted{Reason: "cancelled"}}
		}
		ends <- end
	}()
}

// offer says how many calls of each endpoint run here at a time; the node counts what it assigns.
func (w *worker) offer() {
	all := map[string]uint32{}
	for name := range functions {
		all[name] = slots
	}
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Offer{Offer: &tesserav1.Offer{Slots: all}}})
}

// send ignores a broken stream, whose reader learns of it.
func (w *worker) send(request *tesserav1.WorkRequest) { _ = w.stream.Send(request) }
