// A WHEP server on Pion, compared in scenario `web-rtc` of the load harness: H.264 as RTP packets from a local UDP port, which
// ffmpeg sends, and Opus of silence, to every viewer. Interceptors are those of MediaMTX: NACK, reports, transport-wide feedback.
//
//	pion WHEP_PORT RTP_PORT
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v3"
)

const socketBuffer = 4 << 20

func main() {
	port, input := number(os.Args[1]), number(os.Args[2])
	api, err := newAPI(port)
	check(err)
	h264 := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264}
	video, err := webrtc.NewTrackLocalStaticRTP(h264, "video", "stream")
	check(err)
	opus := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus}
	audio, err := webrtc.NewTrackLocalStaticRTP(opus, "audio", "stream")
	check(err)
	go forward(input, video)
	go beSilent(audio)
	http.HandleFunc("/whep", func(response http.ResponseWriter, request *http.Request) {
		answer, err := play(api, request, video, audio)
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		response.Header().Set("Content-Type", "application/sdp")
		response.Header().Set("Location", "/session")
		response.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(response, answer)
	})
	check(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", port), nil))
}

func newAPI(port int) (*webrtc.API, error) {
	media := &webrtc.MediaEngine{}
	video := webrtc.RTPCodecCapability{
		MimeType:    webrtc.MimeTypeH264,
		ClockRate:   90000,
		SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
	}
	audio := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}
	for _, codec := range []struct {
		parameters webrtc.RTPCodecParameters
		kind       webrtc.RTPCodecType
	}{
		{webrtc.RTPCodecParameters{RTPCodecCapability: video, PayloadType: 96}, webrtc.RTPCodecTypeVideo},
		{webrtc.RTPCodecParameters{RTPCodecCapability: audio, PayloadType: 111}, webrtc.RTPCodecTypeAudio},
	} {
		if err := media.RegisterCodec(codec.parameters, codec.kind); err != nil {
			return nil, err
		}
	}
	interceptors := &interceptor.Registry{}
	if err := webrtc.ConfigureNack(media, interceptors); err != nil {
		return nil, err
	}
	if err := webrtc.ConfigureTWCCSender(media, interceptors); err != nil {
		return nil, err
	}
	if err := webrtc.ConfigureRTCPReports(interceptors); err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	_ = socket.SetWriteBuffer(socketBuffer)
	_ = socket.SetReadBuffer(socketBuffer)
	settings := webrtc.SettingEngine{}
	settings.SetICEUDPMux(webrtc.NewICEUDPMux(nil, socket))
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return webrtc.NewAPI(
		webrtc.WithMediaEngine(media),
		webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings),
	), nil
}

func play(api *webrtc.API, request *http.Request, tracks ...webrtc.TrackLocal) (string, error) {
	offer, err := io.ReadAll(request.Body)
	if err != nil {
		return "", err
	}
	connection, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	for _, track := range tracks {
		if _, err := connection.AddTrack(track); err != nil {
			return "", err
		}
	}
	connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateFailed || state == webrtc.PeerConnectionStateDisconnected {
			_ = connection.Close()
		}
	})
	description := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: string(offer)}
	if err := connection.SetRemoteDescription(description); err != nil {
		return "", err
	}
	answer, err := connection.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(answer); err != nil {
		return "", err
	}
	<-gathered
	return connection.LocalDescription().SDP, nil
}

func forward(port int, track *webrtc.TrackLocalStaticRTP) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	check(err)
	_ = socket.SetReadBuffer(socketBuffer)
	buffer := make([]byte, 1600)
	for {
		length, _, err := socket.ReadFromUDP(buffer)
		check(err)
		packet := &rtp.Packet{}
		if packet.Unmarshal(buffer[:length]) == nil {
			_ = track.WriteRTP(packet)
		}
	}
}

func beSilent(track *webrtc.TrackLocalStaticRTP) {
	payload := make([]byte, 240)
	for number := uint32(0); ; number++ {
		time.Sleep(20 * time.Millisecond)
		header := rtp.Header{Version: 2, SequenceNumber: uint16(number), Timestamp: number * 960}
		_ = track.WriteRTP(&rtp.Packet{Header: header, Payload: payload})
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
