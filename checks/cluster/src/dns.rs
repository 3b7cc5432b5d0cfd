//! A DNS server over UDP for one name, and a resolver that asks it.
//!
//! The answer has an SRV record for each server, because only these have ports, and the address of each target as an
//! additional record. The system's resolver cannot be pointed at a server of the check's own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::BoxError;

/// The name whose servers the zone lists.
const NAME: &str = "_orders._tcp.example";

const A: u16 = 1;
const SRV: u16 = 33;
const INTERNET: u16 = 1;
/// The time for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
const CORRUPT: &str = "the message is corrupt";

/// The zone of the name, served on a loopback port.
pub(crate) struct Zone {
    address: SocketAddr,
    answer: Arc<Mutex<Answer>>,
    task: JoinHandle<()>,
}

/// The zone's answer to every question.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Servers(Vec<SocketAddr>),
    /// An answer with this code, such as 2 for a failed server and 3 for an unknown name.
    Code(u8),
    Silence,
}

impl Zone {
    /// Serves these servers.
    pub(crate) async fn of(servers: Vec<SocketAddr>) -> Result<Self, BoxError> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let (address, answer) = (socket.local_addr()?, Arc::new(Mutex::new(Answer::Servers(servers))));
        let served = Arc::clone(&answer);
        let task = tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut question).await {
                let answer = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(message) = question.get(..length).and_then(|question| answered(question, &answer)) {
                    // A lost answer is a question without one.
                    let _ = socket.send_to(&message, asker).await;
                }
            }
        });
        Ok(Self { address, answer, task })
    }

    /// Replaces the answer.
    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the response to a question; `None` for silence and for what is no question.
fn answered(question: &[u8], answer: &Answer) -> Option<Vec<u8>> {
    let (servers, code) = match answer {
        Answer::Servers(servers) => (&servers[..], 0),
        Answer::Code(code) => (&[][..], *code),
        Answer::Silence => return None,
    };
    let count = u16::try_from(servers.len()).ok()?;
    let mut message = question.get(..2)?.to_vec();
    // A response with authority; the counts of questions, answers, authorities and additional records.
    message.extend([0x84, code]);
    [1, count, 0, count].iter().for_each(|count: &u16| message.extend(count.to_be_bytes()));
    message.extend(question.get(12..)?);
    let record = |message: &mut Vec<u8>, kind: u16, data: &[u8]| {
        [kind, INTERNET].iter().for_each(|field| message.extend(field.to_be_bytes()));
        // Answers may be kept for no time at all.
        message.extend(0_u32.to_be_bytes());
        message.extend(u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
        message.extend(data);
    };
    for server in servers {
        // The name is that of the question, which begins at byte 12.
        message.extend([0xc0, 12]);
        let mut data = vec![0, 0, 0, 0];
        data.extend(server.port().to_be_bytes());
        data.extend(name(&target(server)));
        record(&mut message, SRV, &data);
    }
    for server in servers {
        let SocketAddr::V4(address) = server else { return None };
        message.extend(name(&target(server)));
        record(&mut message, A, &address.ip().octets());
    }
    Some(message)
}

fn target(server: &SocketAddr) -> String {
    format!("at-{}.example", server.port())
}

/// Returns a name in its form on the wire.
fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap_or(0);
        std::iter::once(length).chain(label.bytes())
    });
    labels.chain([0]).collect()
}

/// Asks a DNS server for the servers of the name.
pub(crate) async fn resolve(server: SocketAddr) -> Result<Vec<SocketAddr>, BoxError> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(server).await?;
    // The port of a socket is random and used once, which tells one question from the next.
    let id = socket.local_addr()?.port();
    let mut question = id.to_be_bytes().to_vec();
    question.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    question.extend(name(NAME));
    [SRV, INTERNET].iter().for_each(|field| question.extend(field.to_be_bytes()));
    socket.send(&question).await?;
    let mut answer = [0; 512];
    let length = timeout(PATIENCE, socket.recv(&mut answer)).await.map_err(|_| "no answer in time")??;
    let answer = answer.get(..length).ok_or(CORRUPT)?;
    if answer.get(..2) != Some(&id.to_be_bytes()) {
        return Err("an answer to another question".into());
    }
    match answer.get(3).map(|flags| flags & 0xf) {
        Some(0) => Ok(read(answer)?),
        Some(code) => Err(format!("the answer has the code {code}").into()),
        None => Err(CORRUPT.into()),
    }
}

/// Reads the servers from an answer.
fn read(answer: &[u8]) -> io::Result<Vec<SocketAddr>> {
    let mut reader = Reader { message: answer, at: 4 };
    let [questions, answers, authorities, additional] = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
    for _ in 0..questions {
        reader.name()?;
        reader.bytes(4)?;
    }
    let (mut services, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..answers.saturating_add(authorities).saturating_add(additional) {
        let owner = reader.name()?;
        let kind = reader.u16()?;
        reader.bytes(6)?;
        let length = reader.u16()?;
        let end = reader.at + usize::from(length);
        match kind {
            SRV => {
                reader.bytes(4)?;
                services.push((reader.u16()?, reader.name()?));
            }
            A => {
                let octets: [u8; 4] = reader.bytes(4)?.try_into().map_err(|_| corrupt())?;
                addresses.push((owner, Ipv4Addr::from(octets)));
            }
            _ => {}
        }
        reader.at = end;
    }
    let server = |(port, target): (u16, Vec<u8>)| {
        let (_, address) = addresses.iter().find(|(owner, _)| *owner == target)?;
        Some(SocketAddrV4::new(*address, port).into())
    };
    Ok(services.into_iter().filter_map(server).collect())
}

fn corrupt() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, CORRUPT)
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let bytes = self.message.get(self.at..self.at + count).ok_or_else(corrupt)?;
        self.at += count;
        Ok(bytes)
    }

    fn u16(&mut self) -> io::Result<u16> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes(bytes.try_into().map_err(|_| corrupt())?))
    }

    /// Reads a name, which may end with a pointer to an earlier one.
    fn name(&mut self) -> io::Result<Vec<u8>> {
        let (mut name, mut after) = (Vec::new(), None);
        // A message of 512 bytes has fewer labels. A loop of pointers ends here.
        for _ in 0..256 {
            let length = self.bytes(1)?.first().copied().ok_or_else(corrupt)?;
            match length {
                0 => {
                    self.at = after.unwrap_or(self.at);
                    return Ok(name);
                }
                0xc0.. => {
                    let low = self.bytes(1)?.first().copied().ok_or_else(corrupt)?;
                    after = after.or(Some(self.at));
                    self.at = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                }
                _ => {
                    name.push(length);
                    name.extend(self.bytes(usize::from(length))?);
                }
            }
        }
        Err(corrupt())
    }
}
